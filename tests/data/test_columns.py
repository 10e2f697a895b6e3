import math
from decimal import Decimal

import pytest

from data.columns import Columns
from data.readers import read
from data.rows import Rows
from errors import UserError


def named(**changes) -> Columns:
    return Columns(**{"text": ("text",), "label": "label", "group": None, "separator": None, **changes})


def rows(**columns: list) -> Rows:
    """Rows of mine.csv, the first in line 2."""
    return Rows("mine.csv: line", range(2, 2 + len(next(iter(columns.values())))), columns)


def labels(*values: object, **changes) -> list:
    return named(**changes).labels(rows(label=list(values)))


def test_texts_are_the_strings_they_are_and_missing_ones_are_empty():
    values = ["007", "NA", " ", "", None, math.nan, 7, 1.5, True]
    assert named().texts(rows(text=values)) == ["007", "NA", " ", "", "", "", "7", "1.5", "True"]


def test_several_columns_are_a_list_of_texts_in_the_order_asked_for():
    found = named(text=("title", "body")).texts(rows(body=["b1", None], title=["t1", "t2"]))
    assert found == [["t1", "b1"], ["t2", ""]]


def test_a_lone_surrogate_becomes_a_question_mark():
    assert named().texts(rows(text=["a\ud83db"])) == ["a?b"]
    assert labels("a\ud83db") == ["a?b"]


@pytest.mark.parametrize("value", [["a"], {"en": "a"}, b"a", ("a",)])
def test_a_cell_that_is_no_text_is_named_with_its_line(value):
    with pytest.raises(UserError, match=r"^mine\.csv: line 3: text is (list|dict|bytes|tuple)"):
        named().texts(rows(text=["fine", value]))


def test_labels_are_strings_numbers_with_a_fraction_or_missing():
    assert labels("007", "NA", "null", "nan", 3, -1, True) == ["007", "NA", "null", "nan", "3", "-1", "True"]
    assert labels(1.5, 2.0, Decimal("1.50")) == [1.5, 2.0, "1.50"]
    assert [type(label) for label in labels(2.0, 2)] == [float, str]
    assert labels("", None, math.nan) == [None, None, None]


def test_several_labels_are_a_tuple_without_order_or_repetition():
    assert labels(["b", "a", "b"], [], ("c",), [2, 1]) == [("a", "b"), (), ("c",), ("1", "2")]
    assert labels(list("gfedcba")) == [tuple("abcdefg")]
    assert labels("b; a;;b ", "c", " ; ", separator=";") == [("a", "b"), ("c",), ()]
    assert labels("b; a") == ["b; a"]
    assert labels(None, 5, separator=";")[0] is None


@pytest.mark.parametrize("value", [{"a": 1}, ["x", None], [["x"]], [{"a": 1}], b"x"])
def test_a_cell_that_is_no_label_is_named_with_its_line(value):
    with pytest.raises(UserError, match=r"^mine\.csv: line 3: the label .* is neither a string nor a number"):
        labels("fine", value)


@pytest.mark.parametrize("value", [" x", "x ", "x\n", "   ", ["x", "y "]])
def test_a_label_with_blanks_around_it_is_named_with_its_line(value):
    with pytest.raises(UserError, match=r"^mine\.csv: line 3: the label .* has blanks around it"):
        labels("x", value)


def test_a_split_without_the_label_column_has_no_labels():
    assert named().labels(rows(text=["a", "b"])) == [None, None]


def test_groups_are_strings_and_missing_ones_none():
    found = named(group="author").groups(rows(author=["ann", 7, None, "", math.nan]))
    assert found == ["ann", "7", None, None, None]
    assert named().groups(rows(text=["a", "b"])) == [None, None]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"text": ("body",)}, r"no column 'body', only text, label; set data\.text=COLUMN"),
        ({"text": ("text", "body")}, r"no column 'body', .*data\.text=COLUMN"),
        ({"label": "topic"}, r"no column 'topic', only text, label; set data\.label=COLUMN"),
        ({"group": "author"}, r"no column 'author', .*data\.group=COLUMN"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_those_that_are(changes, sentence):
    table = rows(text=["a"], label=["x"])
    named().check(table, labelled=True)
    with pytest.raises(UserError, match=rf"^mine\.csv: {sentence}"):
        named(**changes).check(table, labelled=True)


def test_only_labelled_splits_need_the_label_column():
    named().check(rows(text=["a"]), labelled=False)
    with pytest.raises(UserError, match="no column 'label'"):
        named().check(rows(text=["a"]), labelled=True)


def test_a_folder_of_texts_is_named_where_it_lacks_a_column(tmp_path):
    path = tmp_path / "classes" / "sport" / "1.txt"
    path.parent.mkdir(parents=True)
    path.write_text("won", encoding="utf-8")
    with pytest.raises(UserError, match="no column 'body', only text, label") as error:
        named(text=("body",)).check(next(read(tmp_path / "classes")), labelled=True)
    assert str(error.value).startswith(str(tmp_path / "classes"))
