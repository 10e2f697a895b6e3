"""How good predictions are, and how sure one can be of that number.

R texts. Missing labels are no matter here: only texts with one are scored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import binomtest, pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, mean_squared_error, recall_score
from sklearn.preprocessing import MultiLabelBinarizer


def single_label(truth: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """Accuracy with Wilson's 95 % interval (Wilson 1927), macro-F1 over the classes in either, mean recall of truth's."""
    correct = round(accuracy_score(truth, predicted, normalize=False))
    interval = binomtest(correct, len(truth)).proportion_ci(confidence_level=0.95, method="wilson")
    recalls = recall_score(truth, predicted, average=None, labels=sorted(set(truth)), zero_division=0)
    return {
        "accuracy": correct / len(truth),
        "accuracy_low": float(interval.low),
        "accuracy_high": float(interval.high),
        "macro_f1": float(f1_score(truth, predicted, average="macro", zero_division=0)),
        "balanced_accuracy": float(recalls.mean()),
    }


def multi_label(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, float]:
    """F1 over all decisions, mean F1 of the labels, and the share of texts with exactly the right labels."""
    binarizer = MultiLabelBinarizer().fit([*truth, *predicted])
    if not len(binarizer.classes_):  # no label anywhere, in truth or said
        return {"micro_f1": 0.0, "macro_f1": 0.0, "exact_match": 1.0}
    on, said = binarizer.transform(truth), binarizer.transform(predicted)
    scores = {
        f"{average}_f1": float(f1_score(on, said, average=average, zero_division=0)) for average in ("micro", "macro")
    }
    return {**scores, "exact_match": float(accuracy_score(on, said))}


def regression(truth: Sequence[float], predicted: Sequence[float]) -> dict[str, float]:
    """Mean squared error and the correlations of values and of ranks (0 where nothing varies)."""
    varies = len(set(truth)) > 1 and len(set(predicted)) > 1
    return {
        "mse": float(mean_squared_error(truth, predicted)),
        "pearson": float(pearsonr(truth, predicted).statistic) if varies else 0.0,
        "spearman": float(spearmanr(truth, predicted).statistic) if varies else 0.0,
    }


SCORES: dict[str, Callable[[Any, Any], dict[str, float]]] = {
    "single_label": single_label,
    "multi_label": multi_label,
    "regression": regression,
}
NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "macro_f1": "macro-F1",
    "micro_f1": "micro-F1",
    "exact_match": "exact",
    "mse": "MSE",
    "pearson": "Pearson",
    "spearman": "Spearman",
}  # as they are printed, in this order
SHARES = ("accuracy", "balanced_accuracy", "macro_f1", "micro_f1", "exact_match")  # printed in percent
WITH_INTERVAL = ("accuracy", "micro_f1", "mse")
WHO = {"test": "this classifier", "apart": "without near copies", "baseline": "TF-IDF + linear", "majority": "majority"}


def sentence(scores: dict[str, float]) -> str:
    """The scores on one line; shares in percent, the main score with its interval."""
    parts = []
    for name, called in NAMES.items():
        if name in scores and not np.isnan(scores[name]):
            parts.append(f"{called} {shown(name, scores[name])}")
            if name in WITH_INTERVAL and f"{name}_low" in scores:
                low, high = (number(name, scores[f"{name}_{end}"]) for end in ("low", "high"))
                parts[-1] += f" (95 % interval {low} to {high})"
    return "  ".join(parts)


def with_interval(name: str, scores: dict[str, float]) -> str:
    """A score with its interval where there is one, for a table."""
    if name not in scores:
        return ""
    low, high = scores.get(f"{name}_low"), scores.get(f"{name}_high")
    interval = f" ({number(name, low)} to {number(name, high)})" if low is not None and high is not None else ""
    return shown(name, scores[name]) + interval


def shown(name: str, value: float) -> str:
    """A score as it is printed, a share with its sign."""
    return number(name, value) + " %" * (name in SHARES)


def number(name: str, value: float) -> str:
    """A score's value, a share in percent."""
    return f"{100 * value:.1f}" if name in SHARES else f"{value:.3f}"
