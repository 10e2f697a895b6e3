import pytest

from evaluation.baseline import constant_baseline, linear_baseline
from tests.conftest import FRUIT, TOOLS

LABELS = ["fruit"] * len(FRUIT) + ["tool"] * len(TOOLS)


def test_the_linear_baseline_learns_its_training_texts():
    assert linear_baseline("single_label", FRUIT + TOOLS, LABELS, FRUIT + TOOLS) == LABELS


def test_the_linear_baseline_learns_several_labels_and_scores():
    several = [["fruit", "sweet"] if label == "fruit" else ["tool"] for label in LABELS]
    assert linear_baseline("multi_label", FRUIT + TOOLS, several, FRUIT + TOOLS) == several
    scores = [5.0 if label == "fruit" else 1.0 for label in LABELS]
    answers = linear_baseline("regression", FRUIT + TOOLS, scores, FRUIT + TOOLS)
    assert all((answer > 3) == (score > 3) for answer, score in zip(answers, scores, strict=True))


def test_the_constant_answer_is_the_most_frequent_class_the_first_by_name_among_equals():
    assert constant_baseline("single_label", ["b", "a", "b"], 2) == ["b", "b"]
    assert constant_baseline("single_label", ["b", "a"], 1) == ["a"]


def test_the_constant_answer_is_the_labels_of_most_texts_or_the_mean_score():
    assert constant_baseline("multi_label", [["a", "b"], ["a"], ["c"]], 1) == [["a"]]
    assert constant_baseline("regression", [1.0, 2.0, 6.0], 2) == pytest.approx([3.0, 3.0])
