"""Texts in, labels out: a trained network with what belongs to it.

R texts, C classes, D d_model. A text is a string, or a list of them where the network was trained on several columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from tokenizers import Tokenizer
from torch import Tensor

from errors import UserError
from model.classifier import Classifier
from model.reader import BATCH_TOKENS, Reader
from model.task import Prediction, SingleLabel

if TYPE_CHECKING:
    from model.explain import Attribution

CHUNK = 1024  # texts that are read ahead of an iterator
Text = str | Sequence[str]


class Columns(NamedTuple):
    """The columns it was trained on; `separator` parts several labels in one cell."""

    text: Sequence[str] = ("text",)
    label: str = "label"
    separator: str | None = None


class TextClassifier(Reader):
    """A trained network with the tokenizer and the task that belong to it: texts in, labels (or scores) out.

    A string gets one answer, a list a list (or tensor) of them, an iterator an iterator that reads 1,024 texts at a time, so
    that memory does not grow. A text is a list of strings where the network was trained on several columns (`n_parts`).
    `max_len` tokens are read of it, by default as many as in training; positions that are not learned take more.
    Threads may share a classifier: no call changes it.

    `precision` is 32-true, bf16-mixed, int8 (of the linear maps, on a CPU), or auto: which of the first two is faster.
    `device` is cpu or cuda (None: cuda where there is one). Raises `UserError` for another precision, and each method for a
    text that is not a string or has other than `n_parts` parts.
    """

    columns = Columns()  # for who reads files; `load_classifier` sets those of the checkpoint

    def __init__(self, network: Classifier, *, task: SingleLabel, tokenizer: Tokenizer, **options: Any) -> None:
        super().__init__(network, tokenizer=tokenizer, **options)  # truncation, n_parts, max_len, precision, device
        self.task, self.labels = task, task.labels

    def logits(self, texts: Sequence[Text], *, max_tokens: int = BATCH_TOKENS) -> Tensor:
        """Return the network's outputs `(R, C)`, rows as the texts are given, columns as `labels`.

        Texts of similar length share batches of at most `max_tokens` padded tokens.
        """
        return self.logits_of(self.encode(texts), max_tokens=max_tokens)

    @overload
    def predict_proba(self, texts: Iterator[Text], *, max_tokens: int = ...) -> Iterator[Tensor]: ...
    @overload
    def predict_proba(self, texts: str | Sequence[Text], *, max_tokens: int = ...) -> Tensor: ...
    def predict_proba(self, texts: Any, *, max_tokens: int = BATCH_TOKENS) -> Any:
        """Return probabilities, of one text `(C,)`, of a list `(R, C)`, of an iterator one `(C,)` after the other; of scores
        their values, `(1,)` and `(R, 1)`. Columns are as `labels`."""
        return answered(texts, lambda some: self.task.probabilities(self.logits(some, max_tokens=max_tokens)))

    @overload
    def embed(self, texts: Iterator[Text]) -> Iterator[Tensor]: ...
    @overload
    def embed(self, texts: str | Sequence[Text]) -> Tensor: ...
    def embed(self, texts: Any) -> Any:
        """Return the vector that the head reads off, in fp32: of one text `(D,)`, of a list `(R, D)`, of an iterator one
        `(D,)` after the other. It is what pooling makes of the last layer; of windows, their mean."""
        return answered(texts, lambda some: self.vectors_of(self.encode(some)))

    @overload
    def predict(self, texts: str, *, abstain: bool = ...) -> Prediction: ...  # type: ignore[overload-overlap]
    @overload
    def predict(self, texts: Iterator[Text], *, abstain: bool = ...) -> Iterator[Prediction]: ...
    @overload
    def predict(self, texts: Sequence[Text], *, abstain: bool = ...) -> list[Prediction]: ...
    def predict(self, texts: Any, *, abstain: bool = False) -> Any:
        """Return label and probabilities of each text, in the order given.

        With `abstain`, the label is None where its probability is below the threshold that validation taught
        (`model/calibration.py`). Raises `UserError` where there is none.
        """
        self.check_abstain(abstain)
        return answered(texts, lambda some: self.predictions(self.logits(some), abstain=abstain))

    @overload
    def explain(self, texts: str, *, label: str | None = ...) -> Attribution: ...  # type: ignore[overload-overlap]
    @overload
    def explain(self, texts: Iterator[Text], *, label: str | None = ...) -> Iterator[Attribution]: ...
    @overload
    def explain(self, texts: Sequence[Text], *, label: str | None = ...) -> list[Attribution]: ...
    def explain(self, texts: Any, *, label: str | None = None) -> Any:
        """Return what each token did for `label` (None: the most probable), as `attributions` of `model/explain.py` does."""
        from model.explain import attributions  # it reads with this class

        return answered(texts, lambda some: [attributions(self, text, label=label) for text in some], chunk=1)

    def predictions(self, logits: Tensor, *, abstain: bool = False) -> list[Prediction]:
        """The answers that `logits (R, C)` stand for; the rest as `predict`."""
        self.check_abstain(abstain)
        least = (self.task.abstain_below or 0.0) if abstain else 0.0
        predictions = [self.task.prediction(row) for row in self.task.probabilities(logits)]
        return [p._replace(label=None) if least and max(p.probabilities.values()) < least else p for p in predictions]

    def check_abstain(self, abstain: bool) -> None:
        """Raise `UserError` where abstaining is asked for and no threshold is known."""
        if abstain and self.task.abstain_below is None:
            raise UserError(f"abstain: {self._lacks('threshold')}; predict without it")

    def predict_sets(self, texts: Sequence[Text]) -> list[list[str]]:
        """Return for each text the labels that may be meant, the most probable first: at least 90 % of the sets hold the truth
        where texts are like those of validation (split conformal prediction). Raises `UserError` as `predict` does.
        """
        if self.task.in_set_from is None:
            raise UserError(f"predict_sets: {self._lacks('label sets')}; use predict")
        return [self.label_set(prediction) for prediction in self.predict(list(texts))]

    def label_set(self, prediction: Prediction) -> list[str]:
        """The most probable label, and the others that reach the threshold of sets, which must be known."""
        assert self.task.in_set_from is not None
        first, *others = prediction.probabilities
        return [first, *(label for label in others if prediction.probabilities[label] >= self.task.in_set_from)]

    def _lacks(self, what: str) -> str:
        single = self.task.name == "single_label"
        reason = "it was trained before there were any" if single else "which task=single_label alone has"
        return f"this classifier (task={self.task.name}) has no {what}, {reason}"


def answered(texts: Any, answer: Callable[[list], Any], *, chunk: int = CHUNK) -> Any:
    """One answer for a string, all that `answer` gives for a list, and for an iterator an iterator of answers."""
    if isinstance(texts, str):
        return answer([texts])[0]
    return lazily(texts, answer, chunk) if isinstance(texts, Iterator) else answer(list(texts))


def lazily(texts: Iterator, answer: Callable[[list], Any], chunk: int) -> Iterator:
    """Answers one after the other, to `chunk` texts at a time. Raises `UserError` that says how many came before."""
    done = 0
    while some := list(islice(texts, chunk)):
        try:
            answers = answer(some)
        except UserError as error:
            raise UserError(f"after {done:,} texts: {error}") from error
        yield from answers
        done += len(some)
