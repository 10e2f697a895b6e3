from evaluation.baseline import linear_baseline, majority_baseline
from tests.conftest import FRUIT, TOOLS


def test_the_linear_baseline_learns_its_training_texts():
    labels = ["fruit"] * len(FRUIT) + ["tool"] * len(TOOLS)
    assert linear_baseline(FRUIT + TOOLS, labels, FRUIT + TOOLS) == labels


def test_the_majority_is_the_most_frequent_training_class_the_first_by_name_among_equals():
    assert majority_baseline(["b", "a", "b"], 2) == ["b", "b"]
    assert majority_baseline(["b", "a"], 1) == ["a"]
