"""Calibration error, coverage, label sets and suspected labels against definitions and what was planted."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from evaluation.calibration import (
    coverage_curve,
    expected_calibration_error,
    label_sets,
    reliability,
    suspects,
)

random = np.random.default_rng(0)
CONFIDENCE = random.uniform(0.2, 1, 500)
RIGHT = random.random(500) < CONFIDENCE**2


def test_the_bins_are_those_of_scikit_learn():
    found = reliability(CONFIDENCE, RIGHT)
    accuracy, confidence = calibration_curve(RIGHT, CONFIDENCE, n_bins=15, strategy="uniform")
    some = found.n > 0
    assert found.accuracy[some] == pytest.approx(accuracy)
    assert found.confidence[some] == pytest.approx(confidence)
    assert found.n.sum() == 500
    assert reliability(np.array([0.0, 1 / 15, 0.94, 1.0]), np.ones(4)).n.tolist() == [2] + [0] * 12 + [0, 2]


def test_the_calibration_error_is_the_mean_gap_by_bin():
    gaps = 0.0
    for low in np.arange(15) / 15:
        inside = np.logical_and(low < CONFIDENCE, low + 1 / 15 >= CONFIDENCE)
        if inside.any():
            gaps += abs(CONFIDENCE[inside].sum() - RIGHT[inside].sum())
    assert expected_calibration_error(CONFIDENCE, RIGHT) == pytest.approx(gaps / 500)
    assert expected_calibration_error(np.array([0.75] * 4), np.array([True] * 3 + [False])) == 0.0
    assert expected_calibration_error(np.array([1.0, 0.0]), np.array([False, True])) == 1.0


def test_accuracy_by_coverage_answers_the_surest_first():
    covered, accuracy = coverage_curve(np.array([0.5, 0.9, 0.7, 0.6]), np.array([False, True, False, True]))
    assert covered.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert accuracy == pytest.approx([1, 1 / 2, 2 / 3, 1 / 2])


def test_a_set_holds_what_reaches_the_threshold_and_is_never_empty():
    probabilities = np.array([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05]])
    assert label_sets(probabilities, 0.3).tolist() == [[True, True, False], [True, False, False]]
    assert label_sets(probabilities, 0.95).tolist() == [[True, False, False], [True, False, False]]


def test_planted_label_errors_are_suspected_and_nothing_else():
    truth = random.integers(3, size=300)
    probabilities = random.dirichlet([1, 1, 1], 300) * 0.2 + 0.8 * np.eye(3)[truth]
    planted = random.choice(300, 15, replace=False)
    labels = truth.copy()
    labels[planted] = (truth[planted] + 1) % 3
    found = suspects(probabilities, labels)
    assert set(found) <= set(planted)
    assert len(found) >= 9  # those of whom the classifier is as sure as usual


def test_suspects_are_off_the_diagonal_of_the_confident_joint():
    # The means of a label's own probability are 0.7 and 0.6; rows 2 and 5 reach the other's.
    first = [0.9, 0.8, 0.4, 0.3, 0.1, 0.7]
    probabilities = np.array([[p, 1 - p] for p in first])
    labels = np.array([0, 0, 0, 1, 1, 1])
    assert (probabilities[:3, 0].mean(), probabilities[3:, 1].mean()) == pytest.approx((0.7, 0.6333), abs=1e-3)
    assert suspects(probabilities, labels).tolist() == [5]
    labels[0] = 1  # now the means are 0.6 and 0.5: rows 0 and 5 reach the first, row 2 the second's
    assert suspects(probabilities, labels).tolist() == [0, 5, 2]


def test_no_text_and_no_error_has_no_suspect():
    assert suspects(np.eye(3), np.arange(3)).tolist() == []
    assert suspects(np.zeros((0, 3)), np.zeros(0, int)).tolist() == []
