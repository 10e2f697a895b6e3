"""Whether an exported network answers as the checkpoint does: on random batches, and on texts with labels.

B batch, T tokens, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from data.readers import read
from errors import UserError
from evaluation.compare import MAIN
from evaluation.metrics import SCORES
from model.exported import Run, in_place_of
from model.task import SingleLabel
from model.text_classifier import TextClassifier

SHAPES = ((1, 1), (1, 3), (2, 7), (5, 17), (3, 64), (2, 512))  # B, T; no longer than the network reads
CLOSE = 1e-4  # of logits around 1; of larger ones in proportion
ANSWERED = 256  # random rows whose answers are compared


class Texts(NamedTuple):
    """Texts with labels that a user gave."""

    texts: list[str]
    truth: list[Any]


def random_batches(sizes: dict[str, Any], shapes: Any = SHAPES) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield `ids (B, T)` and `mask (B, T)` of random tokens and lengths, one batch a shape, always the same.

    `sizes` are the network's `architecture`.
    """
    generator = torch.Generator().manual_seed(0)
    for n_texts, longest in shapes:
        n_tokens = min(longest, sizes["max_len"])
        ids = torch.randint(sizes["vocab_size"], (n_texts, n_tokens), generator=generator)
        lengths = torch.randint(1, n_tokens + 1, (n_texts, 1), generator=generator)
        mask = torch.arange(n_tokens) < lengths  # (B, T)
        yield ids.where(mask, sizes["pad_id"]), mask


@torch.inference_mode()
def largest_difference(classifier: TextClassifier, run: Run, *, needed: bool = True) -> float:
    """The largest absolute difference of two logits on the `random_batches`.

    Raises `UserError` when it is more than `CLOSE`, unless that is not `needed`.
    """
    largest = 0.0
    for ids, mask in random_batches(classifier.network.architecture):
        ours, theirs = classifier.network(ids, mask), run(ids, mask)
        difference = float((ours - theirs).abs().max())
        if needed and not difference <= CLOSE * max(1.0, float(ours.abs().max())):  # so that NaN is refused too
            raise UserError(
                f"the exported network's logits differ by {difference:.1e} on a batch of {tuple(ids.shape)}: not exported; "
                "try another version of torch or ONNX Runtime"
            )
        largest = max(largest, difference)
    return largest


@torch.inference_mode()
def answers_moved(classifier: TextClassifier, run: Run) -> int:
    """Of `ANSWERED` random rows, how many get another answer."""
    (ids, mask), *_ = random_batches(classifier.network.architecture, shapes=((ANSWERED, 64),))
    ours, theirs = (answers(classifier.task, logits) for logits in (classifier.network(ids, mask), run(ids, mask)))
    return sum(a != b for a, b in zip(ours, theirs, strict=True))


def answers(task: SingleLabel, logits: Tensor) -> list[Any]:
    """What `logits (B, C)` stand for."""
    return [task.prediction(row).label for row in task.probabilities(logits)]


def read_texts(path: Path, classifier: TextClassifier) -> Texts:
    """Read the columns text and label; several labels in a cell are parted by ";".

    Raises `UserError` for a file without them or without rows, and for labels that the classifier does not know.
    """
    if classifier.n_parts > 1:
        raise UserError(
            f"--check reads one column of text, and this classifier reads {classifier.n_parts}: leave it out"
        )
    found = Texts([], [])
    for rows in read(path):
        if missing := [name for name in ("text", "label") if name not in rows.columns]:
            columns = ", ".join(rows.columns)
            raise UserError(f"--check {path}: there is no column {' or '.join(missing)}, only {columns}; rename them")
        for row, label in enumerate(rows.columns["label"]):
            found.truth.append(LABELS[classifier.task.name](label, rows.where(row), classifier.labels))
        found.texts.extend(rows.columns["text"])
    if not found.texts:
        raise UserError(f"--check {path}: there is no row below the header; give some texts with labels")
    return found


def one_label(cell: Any, where: str, labels: list[str]) -> str:
    """The label of a cell. Raises `UserError` when it is none of `labels`."""
    if str(cell) not in labels:
        known = ", ".join(labels[:10]) + ", …" * (len(labels) > 10)
        raise UserError(f"--check {where}: the label {cell!r} is unknown to this checkpoint; it knows {known}")
    return str(cell)


def several_labels(cell: Any, where: str, labels: list[str]) -> list[str]:
    """The labels of a cell; none where it is empty."""
    parts = [part.strip() for part in cell.split(";")] if isinstance(cell, str) else list(cell or ())
    return [one_label(part, where, labels) for part in parts if part != ""]


def score(cell: Any, where: str, labels: list[str]) -> float:
    """The number of a cell. Raises `UserError` when it is none."""
    try:
        number = float(cell)
        if math.isfinite(number):
            return number
        raise ValueError
    except (TypeError, ValueError) as error:
        raise UserError(
            f"--check {where}: the label {cell!r} is no number, and this checkpoint gives scores"
        ) from error


LABELS: dict[str, Callable[[Any, str, list[str]], Any]] = {
    "single_label": one_label,
    "multi_label": several_labels,
    "regression": score,
}


def scores_before_and_after(classifier: TextClassifier, run: Run, given: Texts) -> tuple[str, float, float, int]:
    """The name of the task's main score, the checkpoint's, the exported network's, and how many answers differ."""
    task = classifier.task.name
    ours, theirs = ([p.label for p in c.predict(given.texts)] for c in (classifier, in_place_of(classifier, run)))
    name = MAIN[task]
    before, after = (SCORES[task](given.truth, said)[name] for said in (ours, theirs))
    return name, before, after, sum(a != b for a, b in zip(ours, theirs, strict=True))
