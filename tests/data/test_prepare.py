import json

import pytest

from data.columns import Columns
from data.prepare import Prepared, prepared
from data.rows import Rows
from data.sources import Source
from errors import UserError


@pytest.fixture
def prepare(tmp_path):
    """Prepare splits given as lists of (text, label)."""

    def run(splits: dict[str, list[tuple]], *, group: list | None = None, **changes) -> Prepared:
        def read(name: str):
            texts, labels = zip(*splits[name], strict=True)
            columns = {"text": list(texts), "label": list(labels)}
            if group is not None:
                columns["group"] = group
            yield Rows(f"{name}.csv: line", range(2, len(texts) + 2), columns)

        source = Source("mine", repr((splits, group)), {name: lambda name=name: read(name) for name in splits})
        settings = {"task": None, "split_seed": 0, "drop_leaks": True, "separator": None, **changes}
        columns = Columns(("text",), "label", "group" if group else None, settings.pop("separator"))
        return prepared(source, columns, cache_dir=str(tmp_path / "cache"), **settings)

    return run


def rows(table) -> list[tuple]:
    return list(zip(table["text"], table["label"], strict=True))


TRAIN = [(f"text {i}", "ab"[i % 2]) for i in range(20)]
VALIDATION = [("seen by none", "a"), ("nor this", "b")]
TEST = [("a test", "a"), ("another test", "b")]
GIVEN = {"train": TRAIN, "validation": VALIDATION, "test": TEST}


def test_given_splits_stay_as_they_are_in_their_order(prepare):
    splits, facts, _, _ = prepare(GIVEN)
    assert {name: rows(table) for name, table in splits.items()} == GIVEN
    assert facts["rows"] == {"train": 20, "validation": 2, "test": 2}
    assert facts["labels"] == ["a", "b"]
    assert facts["cut_from_train"] == []


def test_the_same_content_is_not_prepared_again_and_other_content_or_settings_are(prepare, monkeypatch):
    first = prepare(GIVEN)
    monkeypatch.setattr("data.prepare.scan", None)
    assert prepare(GIVEN).facts == first.facts
    for splits, changes in (
        ({**GIVEN, "test": TEST[:1]}, {}),
        (GIVEN, {"split_seed": 1}),
        (GIVEN, {"drop_leaks": False}),
    ):
        with pytest.raises(TypeError):
            prepare(splits, **changes)


def test_texts_that_stand_in_a_later_split_too_are_dropped_and_counted(prepare):
    leaky = {
        "train": [*TRAIN, ("a test", "a"), ("seen by none", "b")],
        "validation": [*VALIDATION, ("another test", "b")],
        "test": TEST,
    }
    splits, facts, _, _ = prepare(leaky)
    assert {name: rows(table) for name, table in splits.items()} == GIVEN
    assert facts["leaks"] == {"found": 3, "dropped": 3}
    splits, facts, _, _ = prepare(leaky, drop_leaks=False)
    assert {name: len(table) for name, table in splits.items()} == {"train": 22, "validation": 3, "test": 2}
    assert facts["leaks"] == {"found": 3, "dropped": 0}


def test_a_split_all_of_whose_texts_leak_is_refused(prepare):
    with pytest.raises(UserError, match="validation: every text of it stands in another split"):
        prepare({**GIVEN, "validation": TEST})


def test_copies_conflicts_and_empty_texts_are_counted(prepare):
    odd = {**GIVEN, "train": [*TRAIN, ("text 0", "b"), ("text 2", "a"), ("  ", "a"), (None, "b")]}
    _, facts, _, _ = prepare(odd)
    assert facts["duplicates"] == {"train": 2, "validation": 0, "test": 0}
    assert facts["conflicts"] == {"texts": 1, "example": "text 0"}
    assert facts["empty"] == {"train": 2, "validation": 0, "test": 0}


def test_near_copies_of_training_texts_are_told_by_their_rows(prepare):
    long = "one two three four five six seven eight nine ten eleven twelve " * 3
    splits = {
        **GIVEN,
        "train": [*TRAIN, (long + "end", "a")],
        "test": [*TEST, (long + "END", "a"), (long + "fin", "b")],
    }
    assert prepare(splits).facts["near_duplicates"] == {"validation": [], "test": [2, 3]}


def test_a_group_stays_in_one_split(prepare):
    train = [(f"text {i}", "ab"[i % 2]) for i in range(400)]
    splits, _, _, _ = prepare({"train": train}, group=[i // 4 for i in range(400)])
    groups = [{int(text.split()[1]) // 4 for text in table["text"]} for table in splits.values()]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 100
    assert all(groups)


def test_missing_labels_of_test_are_unlabelled_and_of_train_refused_with_their_line(prepare):
    splits, facts, _, _ = prepare({**GIVEN, "test": [("x", None), ("y", "a"), ("z", -1), ("v", "-1")]})
    assert list(splits["test"]["label"]) == [None, "a", None, None]
    assert facts["unlabelled"] == {"train": 0, "validation": 0, "test": 3}
    with pytest.raises(UserError, match=r"train\.csv: line 22: no label"):
        prepare({**GIVEN, "train": [*TRAIN, ("x", None)]})


def test_minus_one_is_a_class_where_training_has_it(prepare):
    train = [(f"text {i}", i % 3 - 1) for i in range(30)]
    splits, facts, _, _ = prepare({"train": train, "validation": [("v", 0)], "test": [("x", -1)]})
    assert facts["labels"] == ["-1", "0", "1"]
    assert list(splits["test"]["label"]) == ["-1"]


@pytest.mark.parametrize("name", ["validation", "test"])
def test_a_label_that_training_lacks_is_named_with_its_line(prepare, name):
    with pytest.raises(UserError, match=rf"{name}\.csv: line 4: the label 'new' is not in train \(a, b\)"):
        prepare({**GIVEN, name: [*GIVEN[name], ("text", "new")]})


def test_lists_are_several_labels(prepare):
    several = {
        "train": [(f"text {i}", [["a"], ["b", "a"], [], ["c"]][i % 4]) for i in range(20)],
        "validation": [("v", ["a"])],
        "test": [("t", ["b"]), ("u", None)],
    }
    splits, facts, _, _ = prepare(several)
    assert (facts["task"], facts["labels"]) == ("multi_label", ["a", "b", "c"])
    assert facts["classes"] == {"a": 10, "b": 5, "c": 5}
    assert list(splits["train"]["label"])[:3] == [["a"], ["a", "b"], []]
    assert list(splits["test"]["label"]) == [["b"], None]


def test_a_separator_parts_several_labels(prepare):
    train = [(f"text {i}", ["a; b", "b", ""][i % 3]) for i in range(60)]
    splits, facts, _, _ = prepare({"train": train}, separator=";")
    assert facts["task"] == "multi_label"
    assert {tuple(label) for label in splits["train"]["label"]} == {("a", "b"), ("b",), ()}


def test_fractions_are_a_score(prepare):
    splits, facts, _, _ = prepare({"train": [(f"text {i}", i / 7) for i in range(60)]})
    assert facts["task"] == "regression"
    assert all(isinstance(label, float) for label in splits["train"]["label"])
    splits, facts, _, _ = prepare({"train": [(f"text {i}", str(i % 5 + 1)) for i in range(60)]}, task="regression")
    assert set(splits["train"]["label"]) == {1.0, 2.0, 3.0, 4.0, 5.0}
    with pytest.raises(UserError, match=r"train\.csv: line 2: the label 'a' is no number"):
        prepare(GIVEN, task="regression")


@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        ([(f"text {i}", "a") for i in range(9)], r"one class only \(a\)"),
        ([(f"text {i}", str(i)) for i in range(9)], r"9 different labels on 9 rows .*looks like an id"),
        ([(f"text {i}", "a" * (i % 2) + " ") for i in range(9)], r"line 2: the label ' ' has blanks around it"),
    ],
)
def test_labels_of_which_nothing_can_be_learned_are_refused(prepare, train, sentence):
    for given in ({}, {"validation": train[:1], "test": train[:1]}):
        with pytest.raises(UserError, match=sentence):
            prepare({"train": train, **given}, drop_leaks=False)


def test_a_split_without_rows_is_refused_and_nothing_is_left(tmp_path):
    source = Source("mine", "", {"train": lambda: iter(())})
    settings = {"task": None, "split_seed": 0, "drop_leaks": True, "cache_dir": str(tmp_path)}
    with pytest.raises(UserError, match="mine: there is no row in train"):
        prepared(source, Columns(("text",), "label", None, None), **settings)
    assert list(tmp_path.iterdir()) == []


def test_the_facts_are_plain_json(prepare):
    facts = prepare(GIVEN).facts
    assert json.loads(json.dumps(facts)) == facts
