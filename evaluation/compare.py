"""Two classifiers on the same texts: how sure each score is, and whether their difference is more than chance.

R texts, B resamples, C labels, K sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack
from scipy.stats import binomtest
from sklearn.preprocessing import MultiLabelBinarizer

from evaluation.answers import Answers

MAIN = {"single_label": "accuracy", "multi_label": "micro_f1", "regression": "mse"}  # what the comparison is about
RESAMPLES = 2000  # of few texts; of many so many that `DRAWS` texts are drawn in all, and at least 200
DRAWS = 10_000_000


def resampled(task: str, truth: Sequence[Any], predicted: Sequence[Any]) -> dict[str, np.ndarray]:
    """Each score `(B,)` on resamples of the texts with replacement (Efron 1979), the same for all who are asked.

    Every score is a function of sums over the texts, so that a resample costs a product with how often each text was drawn.
    """
    sums, n = sums_of(task, truth, predicted), len(truth)
    random = np.random.default_rng(0)
    totals = np.stack(
        [
            sums.T @ np.bincount(random.integers(n, size=n), minlength=n)
            for _ in range(max(200, min(RESAMPLES, DRAWS // n)))
        ]
    )  # (B, K)
    return scores_of(task, totals, n)


def sums_of(task: str, truth: Sequence[Any], predicted: Sequence[Any]) -> csr_matrix:
    """What a text adds to the sums, `(R, K)`: for classes whether it is right, then C hits, C answers and C truths."""
    if task == "regression":
        x, y = np.asarray(truth, float), np.asarray(predicted, float)
        x, y = x - x.mean(), y - x.mean()  # products of large scores would lose their digits
        return csr_matrix(np.stack([(x - y) ** 2, x, y, x * x, y * y, x * y], axis=1))
    if task == "single_label":
        truth, predicted = [[label] for label in truth], [[label] for label in predicted]
    binarizer = MultiLabelBinarizer(sparse_output=True).fit([*truth, *predicted])
    on, said = (binarizer.transform(labels).astype(float) for labels in (truth, predicted))
    right = csr_matrix(np.asarray(abs(on - said).sum(axis=1) == 0, float).reshape(-1, 1))
    return hstack([right, on.multiply(said), said, on], format="csr")


def scores_of(task: str, totals: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """The scores of `n` texts with the sums `totals (B, K)`, by the names of `evaluation/metrics.py`."""
    with np.errstate(invalid="ignore", divide="ignore"):
        if task == "regression":
            error, x, y, xx, yy, xy = totals.T / n
            return {
                "mse": error,
                "pearson": np.nan_to_num((xy - x * y) / np.sqrt((xx - x * x) * (yy - y * y)), posinf=0.0, neginf=0.0),
            }
        right = totals[:, 0] / n
        hits, said, on = np.split(totals[:, 1:], 3, axis=1)  # (B, C) each
        f1 = 2 * hits / (said + on)  # NaN for a label that the resample lacks
        if task == "single_label":
            return {"accuracy": right, "macro_f1": _mean(f1), "balanced_accuracy": _mean(hits / on)}
        micro = np.nan_to_num(2 * hits.sum(axis=1) / (said + on).sum(axis=1))
        return {"micro_f1": micro, "macro_f1": _mean(f1), "exact_match": right}


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean of each row `(B, C)` → `(B,)` over what is a number, 0 where nothing is."""
    return np.nansum(values, axis=1) / np.maximum(1, (~np.isnan(values)).sum(axis=1))


def intervals(resamples: dict[str, np.ndarray]) -> dict[str, float]:
    """The 95 % percentile interval of each score, as `NAME_low` and `NAME_high`.

    Left out where all resamples agree, as where every text is right: that says nothing about the texts not seen.
    """
    found: dict[str, float] = {}
    for name, values in resamples.items():
        low, high = np.percentile(values, [2.5, 97.5])
        if values.min() < values.max():
            found |= {f"{name}_low": float(low), f"{name}_high": float(high)}
    return found


def mcnemar(truth: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> float:
    """The exact p of McNemar's test (1947, doi:10.1007/BF02295996), by which two are equally often right alone."""
    right, other = (np.asarray(answers, object) == np.asarray(truth, object) for answers in (ours, theirs))
    only_ours, only_theirs = int((right & ~other).sum()), int((other & ~right).sum())
    return float(binomtest(only_ours, only_ours + only_theirs).pvalue) if only_ours + only_theirs else 1.0


def paired_bootstrap(differences: np.ndarray) -> float:
    """The two-sided p that a difference is none, from its values `(B,)` on paired resamples (Efron & Tibshirani 1993)."""
    least = min((differences <= 0).sum(), (differences >= 0).sum())
    return float(min(1.0, 2 * (least + 1) / (len(differences) + 1)))


def verdict(task: str, ours: dict[str, float], theirs: dict[str, float], p: float) -> str:
    """In words: who is ahead, by how much, and whether chance explains it."""
    name = MAIN[task]
    gain = (theirs[name] - ours[name]) if name == "mse" else ours[name] - theirs[name]
    shown = f"p = {p:.{2 if p >= 0.01 else 3}f}" if p >= 0.001 else "p < 0.001"
    test = f"({'McNemar' if task == 'single_label' else 'paired bootstrap'} {shown})"
    if gain == 0:
        return f"level with the linear model {test}"
    how_much = f"{abs(gain):.3g} of squared error" if name == "mse" else f"{100 * abs(gain):.1f} points"
    chance = "more than chance explains" if p < 0.05 else "no more than chance explains"
    return f"{'ahead of' if gain > 0 else 'behind'} the linear model by {how_much}, {chance} {test}"


def compare(
    task: str, test: Answers, linear: Sequence[Any], scores: dict[str, dict], resamples: dict[str, dict]
) -> tuple[str, dict[str, float]]:
    """Ours, "test", against the linear model, "baseline": in words, and as `metrics.json` names it."""
    name = MAIN[task]
    if task == "single_label":
        p = mcnemar(test.truth, test.predicted, linear)
    else:
        p = paired_bootstrap(resamples["test"][name] - resamples["baseline"][name])
    difference = scores["test"][name] - scores["baseline"][name]
    words = verdict(task, scores["test"], scores["baseline"], p)
    return words, {"compare/difference": difference, "compare/p_value": p}
