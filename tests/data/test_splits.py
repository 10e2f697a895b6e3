from collections import Counter

import pytest
from datasets import Dataset, DatasetDict

from data.splits import complete_splits
from errors import UserError

ROWS = [(f"text {i}", "abc"[i % 3] if i < 90 else "a") for i in range(150)]


def split(rows: list[tuple[str, str]], seed: int = 0, **given: list[tuple[str, str]]) -> DatasetDict:
    tables = {
        name: Dataset.from_dict({"text": [t for t, _ in part], "label": [label for _, label in part]})
        for name, part in {"train": rows, **given}.items()
    }
    return complete_splits(DatasetDict(tables), seed=seed)


def contents(splits: DatasetDict) -> dict[str, set[str]]:
    return {name: set(part["text"]) for name, part in splits.items()}


def test_a_tenth_of_each_class_goes_to_validation_and_to_test():
    splits = split(ROWS)
    assert {name: Counter(part["label"]) for name, part in splits.items()} == {
        "train": Counter(a=72, b=24, c=24),
        "validation": Counter(a=9, b=3, c=3),
        "test": Counter(a=9, b=3, c=3),
    }
    texts = [text for part in splits.values() for text in part["text"]]
    assert sorted(texts) == sorted(text for text, _ in ROWS)


def test_splits_depend_on_the_seed_and_not_on_the_order_of_the_rows():
    assert contents(split(ROWS)) == contents(split(ROWS[::-1]))
    assert contents(split(ROWS)) != contents(split(ROWS, seed=1))


def test_a_split_that_is_given_stays():
    splits = split(ROWS, test=[("mine", "b")])
    assert splits["test"]["text"][:] == ["mine"]
    assert len(splits["validation"]) == 15


def test_the_smallest_class_that_can_be_cut_is_cut():
    splits = split([("1", "a"), ("2", "a"), ("3", "a"), ("4", "b"), ("5", "b"), ("6", "b")])
    assert all(Counter(part["label"]) == Counter(a=1, b=1) for part in splits.values())


def test_a_class_too_small_to_cut_is_named():
    with pytest.raises(UserError, match=r"class 'rare' has 1 example, .*at least 3"):
        split([*ROWS, ("alone", "rare")])


def test_one_class_only_is_refused():
    with pytest.raises(UserError, match=r"one class only \(a\)"):
        split([(f"text {i}", "a") for i in range(9)])


@pytest.mark.parametrize("name", ["validation", "test"])
def test_a_label_that_training_lacks_is_named(name):
    with pytest.raises(UserError, match=rf"{name}: the label 'new' is not in train \(a, b, c\)"):
        split(ROWS, **{name: [("text", "new")]})
