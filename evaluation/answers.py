"""Texts with labels, and what a classifier says to them.

R texts, C classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from datasets import Dataset

from encoding import plain
from model.text_classifier import TextClassifier

SHORT = 240  # characters of a text that are shown


class Answers(NamedTuple):
    """Texts of one split and what a classifier says to them; `rows (R,)` are their places in the split, from 0."""

    split: str
    rows: np.ndarray
    texts: list[str]
    truth: list[Any]
    predicted: list[Any]
    probabilities: np.ndarray  # (R, C); of scores their values
    before: np.ndarray  # (R, C) without the temperature

    def only(self, mask: np.ndarray) -> Answers:
        """Those of the texts where `mask (R,)` is True."""
        some = np.flatnonzero(mask)
        texts, truth, predicted = ([column[i] for i in some] for column in (self.texts, self.truth, self.predicted))
        return Answers(
            self.split, self.rows[some], texts, truth, predicted, self.probabilities[some], self.before[some]
        )

    def numbers(self, labels: list[str]) -> np.ndarray:
        """The true classes as numbers `(R,)`."""
        number = {label: i for i, label in enumerate(labels)}
        return np.array([number[label] for label in self.truth], int)

    def right(self) -> np.ndarray:
        """Which answers are right, of several labels all of them, `(R,)`."""
        pairs = zip(self.truth, self.predicted, strict=True)
        return np.array([t == p if isinstance(t, str) else set(t) == set(p) for t, p in pairs], bool)

    def place(self, i: int) -> dict[str, Any]:
        """Where a text stands, and how it begins."""
        text = " ".join(self.texts[i].split())
        shown = text if len(text) <= SHORT else f"{text[:SHORT]}…"
        return {"split": self.split, "row": int(self.rows[i]) + 1, "text": shown}


def answers_of(classifier: TextClassifier, table: Dataset, split: str, *, step: int = 1) -> Answers:
    """What the classifier says to the texts of `table`, which holds each `step`-th row of its split."""
    logits = classifier.logits(table["text"][:])
    probabilities = classifier.task.probabilities(logits)
    return Answers(
        split,
        rows=np.arange(len(table)) * step,
        texts=[plain(text) for text in table["text"]],
        truth=table["label"][:],
        predicted=[classifier.task.prediction(row).label for row in probabilities],
        probabilities=probabilities.numpy(),
        before=logits.softmax(dim=-1).numpy(),
    )
