import pytest
from sklearn.metrics import f1_score

from evaluation.metrics import score


def test_accuracy_macro_f1_and_wilsons_interval():
    truth, predicted = ["a"] * 8 + ["b"] * 2, ["a"] * 7 + ["b"] * 3
    result = score(truth, predicted)
    assert result.accuracy == 0.9
    assert result.macro_f1 == pytest.approx((2 * 7 / 15 + 2 * 2 / 5) / 2)
    # Wilson's formula for 9 of 10 with z = 1.959964.
    z, n, p = 1.959964, 10, 0.9
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    assert (result.low, result.high) == pytest.approx((centre - half, centre + half), abs=1e-6)


def test_accuracy_of_unequal_classes_is_accuracy_and_not_recall():
    truth = ["common"] * 95 + ["rare"] * 5
    assert score(truth, ["common"] * 100).accuracy == 0.95


def test_a_class_absent_from_the_test_texts_counts_as_in_scikit_learn():
    truth, predicted = ["a", "a", "b"], ["a", "c", "b"]
    assert score(truth, predicted).macro_f1 == pytest.approx(
        f1_score(truth, predicted, average="macro", zero_division=0)
    )
