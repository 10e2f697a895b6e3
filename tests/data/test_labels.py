import math

import pytest
import torch
from sklearn.preprocessing import LabelEncoder, MultiLabelBinarizer

from data.labels import (
    MOST_CLASSES,
    check_classes,
    choose_task,
    class_name,
    classes_of,
    in_order,
    label_values,
    number,
    targets,
)
from data.rows import Rows
from errors import UserError


def values(labels: list, *, task: str, known: set[str] | tuple = (), part: str = "train") -> list:
    """What `label_values` says of rows of mine.csv, the first in line 2."""
    rows = Rows("mine.csv: line", range(2, 2 + len(labels)), {"label": labels})
    return list(label_values(rows, labels, task, set(known), part=part))


def decimals(n: int) -> list[str]:
    return [f"{i / 10:.1f}" for i in range(1, n + 1)]


@pytest.mark.parametrize(
    ("labels", "task"),
    [
        (["a", "b", None], "single_label"),
        (["1", "2", "3"], "single_label"),
        ([str(i) for i in range(1000)], "single_label"),  # whole numbers are classes, however many
        ([1.0, 2.0, None], "single_label"),  # whole numbers of a column with gaps
        ([1.0, 2.5], "regression"),
        (decimals(MOST_CLASSES), "single_label"),  # few stars, as 0.5 to 5.0
        (decimals(MOST_CLASSES + 1), "regression"),
        ([*decimals(MOST_CLASSES + 1), None], "regression"),
        ([*decimals(MOST_CLASSES + 1), "none"], "single_label"),
        ([*decimals(MOST_CLASSES + 1), "nan"], "single_label"),
        ([("a",), ("a", "b"), ()], "multi_label"),
        ([("a",), "b", None], "multi_label"),
    ],
)
def test_the_labels_pose_the_task(labels, task):
    assert choose_task(labels, asked=None) == task
    assert choose_task(iter(labels), asked=task) == task


def test_a_task_asked_for_overrules_what_numbers_look_like():
    assert choose_task(["1", "2"], asked="regression") == "regression"
    assert choose_task([1.5, 2.5], asked="single_label") == "single_label"


@pytest.mark.parametrize(
    ("labels", "asked", "sentence"),
    [
        (
            ["a"],
            "classification",
            "task=classification is unknown: choose one of single_label, multi_label, regression",
        ),
        ([("a",)], "single_label", "task=single_label: the labels are lists"),
        ([("a",)], "regression", "task=regression: the labels are lists"),
        (["a;b"], "multi_label", r"task=multi_label: the labels are no lists; .*data\.separator"),
    ],
)
def test_a_task_the_labels_do_not_allow_is_refused(labels, asked, sentence):
    with pytest.raises(UserError, match=sentence):
        choose_task(labels, asked=asked)


def test_a_label_is_a_number_where_it_is_a_finite_one():
    assert [number(label) for label in ("1", "-2.5", 3.0, "1e3")] == [1.0, -2.5, 3.0, 1000.0]
    assert [number(label) for label in ("x", "", None, "nan", "inf", math.inf, ("1",))] == [None] * 7


def test_whole_numbers_with_a_point_are_the_classes_without():
    assert [class_name(label) for label in (1.0, -1.0, 2.5, "1.0", "a")] == ["1", "-1", "2.5", "1.0", "a"]
    assert class_name(None) is None


def test_classes_stand_by_number_where_all_are_whole_numbers_and_by_name_otherwise():
    assert in_order(["10", "9", "-1", "9"]) == ["-1", "9", "10"]
    assert in_order(["10", "9", "b"]) == ["10", "9", "b"]
    assert in_order(["1.5", "10", "9"]) == ["1.5", "10", "9"]
    assert in_order({"b", "B", "a", "é"}) == ["B", "a", "b", "é"]
    assert in_order(["7", "007", "07", "0007", "6"]) == ["6", "0007", "007", "07", "7"]
    assert in_order(["-", "1"]) == ["-", "1"]
    assert in_order([]) == []


def test_classes_of_rows_are_one_several_or_for_a_score_none():
    assert classes_of(["a", 1.0, 2.5], "single_label") == [("a",), ("1",), ("2.5",)]
    assert classes_of([("a", "b"), ()], "multi_label") == [("a", "b"), ()]
    assert classes_of([1.5, "2"], "regression") == [(), ()]


@pytest.mark.parametrize(
    ("train", "task", "sentence"),
    [
        (["a"] * 9, "single_label", r"one class only \(a\)"),
        ([("a",), ()], "multi_label", r"one class only \(a\)"),
        ([(), ()], "multi_label", "one class only"),
        ([2.5, 2.5], "regression", r"every label is 2\.5"),
        ([1e20, 2e20], "regression", "too large or too close together"),
        ([1.0, 1.0000001], "regression", "too large or too close together"),
        (list("abc"), "single_label", r"3 different labels on 3 rows \(a, b, c, …\).*data\.label=COLUMN"),
    ],
)
def test_labels_of_which_nothing_can_be_learned_are_refused(train, task, sentence):
    with pytest.raises(UserError, match=sentence):
        check_classes(train, task)


@pytest.mark.parametrize(
    ("train", "task"),
    [
        (["a", "b"], "single_label"),
        (list("abca"), "single_label"),
        ([("a",), ("a", "b"), ()], "multi_label"),
        ([2.5, 2.0], "regression"),
    ],
)
def test_labels_of_which_something_can_be_learned_pass(train, task):
    check_classes(train, task)


def test_values_are_what_the_task_takes():
    assert values(["a", 1.0, 2.5], task="single_label", known=["a", "1", "2.5"]) == ["a", "1", "2.5"]
    assert values([("a", "b"), (), "a"], task="multi_label", known=["a", "b"]) == [["a", "b"], [], ["a"]]
    assert values(["1.5", 2.0, "-1"], task="regression") == [1.5, 2.0, -1.0]


@pytest.mark.parametrize("task", ["single_label", "multi_label"])
def test_a_test_split_may_lack_labels_also_written_as_minus_one(task):
    assert values([None, "-1", -1.0], task=task, known=["a", "b"], part="test") == [None, None, None]
    assert values([None, "-1"], task="regression", part="test") == [None, -1.0]


def test_minus_one_is_a_class_where_training_has_it():
    assert values(["-1", -1.0, "1"], task="single_label", known=["-1", "0", "1"], part="test") == ["-1", "-1", "1"]


def test_a_test_row_may_lack_its_label_also_where_minus_one_is_a_class():
    assert values(["-1", None], task="single_label", known=["-1", "0", "1"], part="test") == ["-1", None]


@pytest.mark.parametrize("part", ["validation", "test"])
def test_a_label_that_training_lacks_is_named_with_its_line(part):
    with pytest.raises(UserError, match=r"^mine\.csv: line 3: the label 'c' is not in train \(a, b\)"):
        values(["a", "c"], task="single_label", known=["b", "a"], part=part)
    with pytest.raises(UserError, match=r"^mine\.csv: line 2: the label 'c' is not in train \(a, b\)"):
        values([("a", "c")], task="multi_label", known=["b", "a"], part=part)


def test_minus_one_is_no_class_of_validation():
    with pytest.raises(UserError, match="the label '-1' is not in train"):
        values(["-1"], task="single_label", known=["a", "b"], part="validation")


@pytest.mark.parametrize("label", ["high", "nan", math.inf])
def test_a_score_that_is_no_number_is_named_with_its_line(label):
    with pytest.raises(UserError, match=r"^mine\.csv: line 3: the label .* is no number, as task=regression needs"):
        values(["1", label], task="regression")


def test_targets_of_one_label_are_class_numbers():
    labels = in_order(["b", "a", "c"])
    given = ["c", "a", "b", "a"]
    found = targets([*given, None], labels, "single_label")
    assert found.dtype == torch.int64
    assert found.tolist() == [*LabelEncoder().fit(labels).transform(given).tolist(), -1]
    by_number = in_order(["10", "9"])
    assert targets(["9", "10"], by_number, "single_label").tolist() == [0, 1]


def test_targets_of_several_labels_are_true_and_false():
    labels = in_order(["b", "a", "c"])
    given = [["c", "a"], [], ["b"], ["a", "b", "c"]]
    found = targets([*given, None], labels, "multi_label")
    assert found.dtype == torch.bool
    assert found[:-1].int().tolist() == MultiLabelBinarizer(classes=labels).fit_transform(given).tolist()
    assert found[-1].tolist() == [False] * 3


def test_targets_of_scores_are_numbers():
    found = targets([1.5, -2.0, None], ["score"], "regression")
    assert found.dtype == torch.float32
    assert found[:2].tolist() == [1.5, -2.0]
    assert found[2].isnan()
