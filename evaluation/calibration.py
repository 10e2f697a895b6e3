"""How far predicted probabilities can be trusted: reliability, coverage, label sets, suspected label errors.

R texts, C classes. `confidence (R,)` is the probability of the answer, `right (R,)` whether it is right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluation.answers import Answers
from model.task import SingleLabel

N_BINS = 15


class Bins(NamedTuple):
    """Texts by confidence, in bins of equal width: how many, their mean confidence, their accuracy (NaN where none)."""

    n: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray


def reliability(confidence: np.ndarray, right: np.ndarray) -> Bins:
    """`N_BINS` bins, the first from 0 to 1/15 inclusive."""
    bin_of = np.clip(np.ceil(confidence * N_BINS).astype(int) - 1, 0, N_BINS - 1)
    n = np.bincount(bin_of, minlength=N_BINS)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(bin_of, weights=values, minlength=N_BINS) / n for values in (confidence, right)]
    return Bins(n, *means)


def expected_calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """The gap between confidence and accuracy, averaged over the texts by bin (Guo et al. 2017, arXiv:1706.04599, eq. 3)."""
    bins = reliability(confidence, right)
    return float(np.nansum(bins.n * np.abs(bins.confidence - bins.accuracy)) / len(confidence))


def coverage_curve(confidence: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of texts answered, and accuracy among them, as the threshold falls from text to text. `(R,)` each."""
    order = np.argsort(-confidence, kind="stable")
    n = np.arange(1, len(order) + 1)
    return n / len(order), right[order].cumsum() / n


def label_sets(probabilities: np.ndarray, least: float) -> np.ndarray:
    """Which classes are in each text's set, `(R, C)` bool: those that reach `least`, and the most probable one."""
    sets = probabilities >= least
    sets[np.arange(len(sets)), probabilities.argmax(axis=1)] = True
    return sets


def suspects(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Rows whose label is suspected wrong, the most suspect first (Northcutt et al. 2021, arXiv:1911.00068).

    `probabilities (R, C)` come from a model that has not seen the texts; `labels (R,)` are numbers of classes. A text is
    confidently of the most probable class among those whose probability reaches the mean that texts of that label have; one
    that is confidently of another class than its label stands off the diagonal of the confident joint. Ranked by the
    probability of the given label.
    """
    n = np.bincount(labels, minlength=probabilities.shape[1])
    of_label = probabilities[np.arange(len(labels)), labels]  # (R,) self-confidence
    usual = np.bincount(labels, weights=of_label, minlength=len(n)) / np.maximum(n, 1)  # (C,)
    reached = np.where((probabilities >= usual - 1e-9) & (n > 0), probabilities, -1.0)
    elsewhere = (reached.max(axis=1) >= 0) & (reached.argmax(axis=1) != labels)
    rows = np.flatnonzero(elsewhere)
    return rows[np.argsort(of_label[rows], kind="stable")]


def trust(task: SingleLabel, test: Answers) -> dict[str, float]:
    """Calibration, abstention and label sets in numbers, as `metrics.json` names them; nothing for other tasks."""
    if task.name != "single_label":
        return {}
    confidence, right = test.probabilities.max(axis=1), test.right()
    found = {
        "test/temperature": task.temperature,
        "test/ece": expected_calibration_error(confidence, right),
        "test/ece_before": expected_calibration_error(test.before.max(axis=1), right),
    }
    if task.abstain_below is not None:
        answered = confidence >= task.abstain_below
        found |= {"abstain/threshold": task.abstain_below, "abstain/coverage": float(answered.mean())}
        if answered.any():
            found["abstain/accuracy"] = float(right[answered].mean())
    if task.in_set_from is not None:
        sets = label_sets(test.probabilities, task.in_set_from)
        holds = sets[np.arange(len(sets)), test.numbers(task.labels)]
        found |= {"conformal/coverage": float(holds.mean()), "conformal/size": float(sets.sum(axis=1).mean())}
    return found
