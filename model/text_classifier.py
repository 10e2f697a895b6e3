"""Texts in, labels out: a trained network with what belongs to it.

R texts, B texts in a batch of P pieces, C classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from encoding import TokenIds, encode
from errors import UserError
from model.classifier import Classifier, mean_over_pieces
from model.device import choose_precision, recurs
from model.task import Prediction, SingleLabel
from padding import cut_by_budget, pad

PRECISIONS = ("auto", "32-true", "bf16-mixed", "int8")
BF16_TOKENS = 256  # tokens of a batch from which bf16 pays on a CPU: the weights are turned into bf16 for each


class TextClassifier:
    """A trained network with the tokenizer and the task that belong to it: texts in, labels (or scores) out.

    A text is a string, or a list of them where the network was trained on several columns (`n_parts`). `max_len`
    tokens are read of it, by default as many as in training; positions that are not learned take more.

    `precision` is 32-true, bf16-mixed, int8 (of the linear maps, on a CPU), or auto: which of the first two is faster.
    `device` is cpu or cuda (None: cuda where there is one). Raises `UserError`
    for another precision.
    """

    def __init__(
        self,
        network: Classifier,
        *,
        task: SingleLabel,
        tokenizer: Tokenizer,
        truncation: str = "head",
        n_parts: int = 1,
        max_len: int | None = None,
        precision: str = "auto",
        device: str | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise UserError(f"precision={precision} is unknown: choose one of {', '.join(PRECISIONS)}")
        self.device = device or ("cuda" if precision != "int8" and torch.cuda.is_available() else "cpu")
        precision = choose_precision(precision, self.device, d_model=network.architecture["d_model"])
        self.bf16 = precision == "bf16-mixed"
        self.network: Classifier = (in_int8(network) if precision == "int8" else network).eval().to(self.device)
        self.task, self.tokenizer, self.truncation = task, tokenizer, truncation
        self.labels = task.labels
        self.n_parts = n_parts
        longest = network.encoder.position.longest
        self.max_len: int = max_len or network.architecture["max_len"]
        if longest is not None:
            self.max_len = min(self.max_len, longest)
        self.limit = self.max_len if recurs(self.device, precision) else None  # of padding to lengths that recur
        self.n_truncated = 0  # texts of the latest call of which something was cut off

    def encode(self, texts: Sequence[str | Sequence[str]]) -> TokenIds:
        """Tokenise as in training. Raises `UserError` for a text with other than `n_parts` parts."""
        for row, text in enumerate(texts):
            if (1 if isinstance(text, str) or not isinstance(text, (list, tuple)) else len(text)) != self.n_parts:
                raise UserError(
                    f"text {row + 1}: this classifier reads {self.n_parts} part{'s' * (self.n_parts > 1)} a text, as "
                    f"{['…'] * self.n_parts if self.n_parts > 1 else '…'!r}; give as many"
                )
        return encode(self.tokenizer, texts, max_len=self.max_len, truncation=self.truncation)

    @torch.inference_mode()
    def logits(self, texts: Sequence[str | Sequence[str]], *, max_tokens: int = 8192) -> Tensor:
        """Return the network's outputs `(R, C)`, rows as the texts are given, columns as `labels`.

        Texts of similar length share batches of at most `max_tokens` padded tokens. Raises `UserError` for a text
        that is not a string.
        """
        tokens = self.encode(texts)
        self.n_truncated = int((tokens.n_tokens > self.max_len).sum()) if self.truncation != "windows" else 0
        lengths, order = tokens.lengths.sort(stable=True)
        logits = torch.empty(len(texts), len(self.labels))
        ends = cut_by_budget(lengths.numpy(), max_tokens=max_tokens)
        for rows in order.tensor_split(ends[:-1]) if ends else ():
            ids, mask, text = pad(tokens, rows, pad_id=self.network.architecture["pad_id"], limit=self.limit)
            bf16 = self.bf16 and (self.device == "cuda" or mask.numel() >= BF16_TOKENS)
            with torch.autocast(self.device, torch.bfloat16, enabled=bf16):
                pieces = self.network(ids.to(self.device), mask.to(self.device)).float().cpu()  # (P, C)
            logits[rows] = mean_over_pieces(pieces, text, len(rows))  # (B, C)
        return logits

    def predict_proba(self, texts: Sequence[str | Sequence[str]], *, max_tokens: int = 8192) -> Tensor:
        """Return probabilities `(R, C)`, of a score its value `(R, 1)`; the rest as `logits` does."""
        return self.task.probabilities(self.logits(texts, max_tokens=max_tokens))

    def predict(self, texts: Sequence[str | Sequence[str]], *, abstain: bool = False) -> list[Prediction]:
        """Return label and probabilities for each text, in the order given. Raises as `predict_proba` does.

        With `abstain`, the label is None where its probability is below the threshold that validation taught
        (`model/calibration.py`). Raises `UserError` where there is none.
        """
        if isinstance(texts, str):
            raise UserError("predict takes a list of texts, not one string: write predict([text])")
        if abstain and self.task.abstain_below is None:
            raise UserError(f"abstain: {self._lacks('threshold')}; predict without it")
        least = (self.task.abstain_below or 0.0) if abstain else 0.0
        predictions = [self.task.prediction(row) for row in self.predict_proba(texts)]
        return [p._replace(label=None) if least and max(p.probabilities.values()) < least else p for p in predictions]

    def predict_sets(self, texts: Sequence[str | Sequence[str]]) -> list[list[str]]:
        """Return for each text the labels that may be meant, the most probable first: at least 90 % of the sets hold the truth
        where texts are like those of validation (split conformal prediction). Raises `UserError` as `predict` does.
        """
        if self.task.in_set_from is None:
            raise UserError(f"predict_sets: {self._lacks('label sets')}; use predict")
        return [self.label_set(prediction) for prediction in self.predict(texts)]

    def label_set(self, prediction: Prediction) -> list[str]:
        """The most probable label, and the others that reach the threshold of sets, which must be known."""
        assert self.task.in_set_from is not None
        first, *others = prediction.probabilities
        return [first, *(label for label in others if prediction.probabilities[label] >= self.task.in_set_from)]

    def _lacks(self, what: str) -> str:
        single = self.task.name == "single_label"
        reason = "it was trained before there were any" if single else "which task=single_label alone has"
        return f"this classifier (task={self.task.name}) has no {what}, {reason}"


def in_int8(network: Classifier) -> Classifier:
    """A copy whose linear maps hold their weights in a byte each and turn what comes in to bytes as it comes (Jacob et al.
    2018, arXiv:1712.05877); a quarter of the memory."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*quantized tensor creation.*")  # torchao is to take its place
        return torch.ao.quantization.quantize_dynamic(network, {nn.Linear}, dtype=torch.qint8)
