"""Intervals and tests against scikit-learn, scipy and the formula."""

import numpy as np
import pytest
from scipy.stats import bootstrap, pearsonr
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

from evaluation.compare import compare, intervals, mcnemar, paired_bootstrap, resampled, scores_of, sums_of, verdict
from evaluation.metrics import SCORES
from tests.evaluation.test_page import answers

random = np.random.default_rng(0)
TRUTH = random.choice(["a", "b", "c"], 60).tolist()
SAID = [t if random.random() < 0.7 else str(random.choice(["a", "b", "c", "d"])) for t in TRUTH]
SEVERAL = [sorted(random.choice(["x", "y", "z"], random.integers(0, 3), replace=False).tolist()) for _ in range(60)]
SAID_SEVERAL = [labels if random.random() < 0.6 else ["y"] for labels in SEVERAL]
VALUES = random.normal(1e4, 2, 60)
SAID_VALUES = VALUES + random.normal(0, 1, 60)
CASES = {
    "single_label": (TRUTH, SAID),
    "multi_label": (SEVERAL, SAID_SEVERAL),
    "regression": (VALUES.tolist(), SAID_VALUES.tolist()),
}


@pytest.mark.parametrize("task", CASES)
def test_scores_of_sums_are_those_of_scikit_learn(task):
    truth, said = CASES[task]
    sums = sums_of(task, truth, said)
    found = scores_of(task, (np.ones(60) @ sums).reshape(1, -1), len(truth))
    expected = SCORES[task](truth, said)
    assert len(found) >= 2
    for name, value in found.items():
        assert value[0] == pytest.approx(expected[name], rel=1e-9), name


@pytest.mark.filterwarnings("ignore:y_pred contains classes")
def test_scores_of_a_resample_are_those_of_scikit_learn():
    """Also where a resample lacks a class."""
    rows = np.random.default_rng(0).integers(8, size=8)  # as `resampled` draws first
    truth, said = ["a", "a", "b", "c", "b", "a", "b", "c"], ["a", "b", "b", "d", "d", "a", "a", "c"]
    found = resampled("single_label", truth, said)
    drawn, answers = [truth[i] for i in rows], [said[i] for i in rows]
    assert len(set(drawn)) < 3
    assert found["accuracy"][0] == accuracy_score(drawn, answers)
    assert found["macro_f1"][0] == pytest.approx(f1_score(drawn, answers, average="macro", zero_division=0))
    assert found["balanced_accuracy"][0] == pytest.approx(balanced_accuracy_score(drawn, answers))


def test_the_interval_is_scipys_percentile_bootstrap():
    right = (np.array(TRUTH) == np.array(SAID)).astype(float)
    theirs = bootstrap((right,), np.mean, n_resamples=9999, method="percentile", rng=1).confidence_interval
    found = intervals(resampled("single_label", TRUTH, SAID))
    assert found["accuracy_low"] == pytest.approx(theirs.low, abs=0.02)
    assert found["accuracy_high"] == pytest.approx(theirs.high, abs=0.02)
    pair = (VALUES, SAID_VALUES)
    theirs = bootstrap(
        pair, lambda x, y: pearsonr(x, y).statistic, paired=True, vectorized=False, n_resamples=999, method="percentile"
    ).confidence_interval
    found = intervals(resampled("regression", *CASES["regression"]))
    assert found["pearson_low"] == pytest.approx(theirs.low, abs=0.02)


def test_all_who_are_asked_get_the_same_resamples():
    first, again = (resampled("single_label", TRUTH, SAID)["accuracy"] for _ in range(2))
    assert np.array_equal(first, again)
    wrong = [t if s != t else "other" for t, s in zip(TRUTH, SAID, strict=True)]  # right where ours is wrong
    assert resampled("single_label", TRUTH, wrong)["accuracy"] == pytest.approx(1 - first)


def test_where_all_are_right_no_interval_is_claimed():
    assert intervals(resampled("single_label", ["a", "b"] * 9, ["a", "b"] * 9)).keys() == set()
    assert intervals(resampled("regression", [1.0, 2.0], [1.0, 2.0])).get("mse_low") is None


def test_mcnemar_counts_the_texts_that_one_alone_has_right():
    truth = ["a"] * 20
    ours, theirs = ["a"] * 18 + ["b"] * 2, ["b"] * 8 + ["a"] * 10 + ["b", "a"]
    # 8 that ours alone has right, 1 the other: 2 · (1 + 9) / 2^9
    assert mcnemar(truth, ours, theirs) == pytest.approx(20 / 512)
    assert mcnemar(truth, ours, ours) == 1.0


def test_a_paired_bootstrap_finds_what_is_there_and_nothing_else():
    gain = np.random.default_rng(1)
    null = [
        paired_bootstrap(gain.normal(gain.normal(), 1, 999)) for _ in range(400)
    ]  # the mean scatters as the resamples do
    assert np.mean(np.array(null) < 0.05) == pytest.approx(0.05, abs=0.03)
    assert paired_bootstrap(np.full(999, 0.1)) == pytest.approx(0.002)
    assert paired_bootstrap(np.zeros(999)) == 1.0


@pytest.mark.parametrize(
    ("task", "ours", "theirs", "p", "words"),
    [
        ("single_label", 0.954, 0.94, 0.01, "ahead of | by 1.4 points, more than chance explains (McNemar p = 0.01)"),
        ("single_label", 0.9, 0.95, 0.2, "behind | by 5.0 points, no more than chance explains (McNemar p = 0.20)"),
        ("single_label", 0.9, 0.9, 1, "level with the linear model (McNemar p = 1.00)"),
        ("single_label", 0.9, 0.5, 1e-9, "ahead of | by 40.0 points, more than chance explains (McNemar p < 0.001)"),
        ("regression", 1.5, 1, 0.03, "behind | by 0.5 of squared error, more than chance explains (paired bootstrap p = 0.03)"),
    ],
)  # fmt: skip
def test_the_verdict_says_who_is_ahead_and_whether_chance_explains_it(task, ours, theirs, p, words):
    name = {"single_label": "accuracy", "regression": "mse"}[task]
    assert verdict(task, {name: ours}, {name: theirs}, p) == words.replace("|", "the linear model")


def test_the_comparison_is_signed_and_named_for_metrics_json():
    test = answers("single_label")
    linear = test.truth
    scores = {
        name: SCORES["single_label"](test.truth, said)
        for name, said in (("test", test.predicted), ("baseline", linear))
    }
    words, named = compare("single_label", test, linear, scores, {})
    assert words.startswith("behind the linear model by ")
    assert named["compare/difference"] < 0
    assert named["compare/p_value"] == mcnemar(test.truth, test.predicted, linear)
