"""How good predictions are, and how sure one can be of that number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, f1_score


class Score(NamedTuple):
    """Shares from 0 to 1; `low` and `high` bound the accuracy's 95 % interval."""

    accuracy: float
    macro_f1: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"accuracy {100 * self.accuracy:5.1f} %  (95 % interval {100 * self.low:.1f} to {100 * self.high:.1f})"
            f"  macro-F1 {100 * self.macro_f1:5.1f} %"
        )


def score(truth: Sequence[str], predicted: Sequence[str]) -> Score:
    """Accuracy with Wilson's interval (Wilson 1927) and the macro-F1 over the classes that occur in either."""
    correct = round(accuracy_score(truth, predicted, normalize=False))
    interval = binomtest(correct, len(truth)).proportion_ci(confidence_level=0.95, method="wilson")
    macro_f1 = f1_score(truth, predicted, average="macro", zero_division=0)
    return Score(correct / len(truth), float(macro_f1), float(interval.low), float(interval.high))
