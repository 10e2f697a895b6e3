import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import balanced_accuracy_score, f1_score

from evaluation.metrics import multi_label, regression, sentence, single_label


def test_accuracy_macro_f1_and_wilsons_interval():
    truth, predicted = ["a"] * 8 + ["b"] * 2, ["a"] * 7 + ["b"] * 3
    scores = single_label(truth, predicted)
    assert scores["accuracy"] == 0.9
    assert scores["macro_f1"] == pytest.approx((2 * 7 / 15 + 2 * 2 / 5) / 2)
    # Wilson's formula for 9 of 10 with z = 1.959964.
    z, n, p = 1.959964, 10, 0.9
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    assert scores["accuracy_low"] == pytest.approx(centre - half, abs=1e-6)
    assert scores["accuracy_high"] == pytest.approx(centre + half, abs=1e-6)


def test_accuracy_of_unequal_classes_is_accuracy_and_balanced_accuracy_is_mean_recall():
    scores = single_label(["common"] * 95 + ["rare"] * 5, ["common"] * 100)
    assert scores["accuracy"] == 0.95
    assert scores["balanced_accuracy"] == 0.5


@pytest.mark.filterwarnings("ignore:y_pred contains classes")
def test_a_class_absent_from_the_test_texts_counts_as_in_scikit_learn():
    truth, predicted = ["a", "a", "b"], ["a", "c", "b"]
    scores = single_label(truth, predicted)
    assert scores["macro_f1"] == pytest.approx(f1_score(truth, predicted, average="macro", zero_division=0))
    assert scores["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, predicted))


def test_several_labels_are_scored_over_all_decisions_and_by_label():
    truth, predicted = [["a", "b"], ["a"], []], [["a"], ["a", "c"], []]
    scores = multi_label(truth, predicted)
    assert scores["micro_f1"] == pytest.approx(2 * 2 / (3 + 3))  # two hits, three said, three true
    assert scores["macro_f1"] == pytest.approx((1 + 0 + 0) / 3)
    assert scores["exact_match"] == pytest.approx(1 / 3)


def test_scores_are_compared_by_error_and_by_both_correlations():
    truth, predicted = [1.0, 2.0, 3.0, 10.0], [1.5, 2.0, 2.5, 3.0]
    scores = regression(truth, predicted)
    assert scores["mse"] == pytest.approx((0.25 + 0 + 0.25 + 49) / 4)
    assert scores["pearson"] == pytest.approx(pearsonr(truth, predicted)[0])
    assert scores["spearman"] == pytest.approx(spearmanr(truth, predicted)[0])
    assert regression(truth, [2.0] * 4)["pearson"] == 0.0


def test_the_sentence_gives_shares_in_percent_and_errors_as_they_are():
    line = sentence(single_label(["a", "b"], ["a", "b"]))
    assert line == "accuracy 100.0 % (95 % interval 34.2 to 100.0)  balanced 100.0 %  macro-F1 100.0 %"
    assert sentence({"mse": 0.25, "spearman": 0.5}) == "MSE 0.250  Spearman 0.500"
