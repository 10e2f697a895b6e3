from collections import Counter

import numpy as np

from data.check import conflicting, text_lines, token_lines, typos

FACTS = {
    "task": "single_label",
    "rows": {"train": 1000, "validation": 100, "test": 100},
    "cut_from_train": ["validation", "test"],
    "classes": {"a": 600, "b": 300, "c": 100},
    "lengths": {"50 %": 10, "90 %": 100, "99 %": 1200, "100 %": 5000},
    "truncated": 0.05,
    "unknown": {"train": 0.0, "validation": 0.01, "test": 0.02},
    "duplicates": {"train": 0},
    "leaks": {"found": 0, "dropped": 0},
    "near_duplicates": {"validation": [], "test": []},
    "conflicts": {"texts": 0, "example": ""},
    "typos": [],
    "unlabelled": {"test": 0},
    "empty": {"train": 0},
}


def lines(**changes) -> dict[str, str]:
    facts = {**FACTS, **changes}
    return {**dict(text_lines(facts)), **dict(token_lines(facts, max_len=512))}


def test_sound_data_take_four_lines():
    assert lines() == {
        "splits": "1,000 / 100 / 100 texts (train / validation / test), validation and test cut from train",
        "task": "single_label, 3 classes: a 600 (60 %), b 300 (30 %), c 100 (10 %); largest / smallest 6.0",
        "lengths": "half of the texts have up to 10 tokens, 90 % 100, 99 % 1,200; "
        "5 % are longer than model.max_len=512, 1200 would hold 99 %",
        "unknown": "0.0 / 1.0 / 2.0 % of the tokens are not in the vocabulary (train / validation / test)",
    }


def test_what_is_odd_takes_two_more():
    odd = lines(
        duplicates={"train": 3, "test": 1},
        leaks={"found": 5, "dropped": 5},
        near_duplicates={"validation": [], "test": [1, 2]},
        conflicts={"texts": 2, "example": "a\ntext"},
        typos=[["c", "a"]],
        unlabelled={"test": 7},
        empty={"train": 1, "test": 1},
    )
    assert len(odd) == 6
    assert odd["copies"] == (
        "4 texts stand twice in their split; 5 of train or validation stand in a later split too, dropped from there; "
        "2 of test are nearly in train"
    )
    assert odd["labels"] == (
        "2 texts carry different labels, as \"a text\"; 'c' (100) looks like 'a' (600); "
        "7 of test have none: predicted, not scored; 2 texts are empty"
    )
    assert "left there (data.drop_leaks=false)" in lines(leaks={"found": 5, "dropped": 0})["copies"]


def test_many_classes_are_named_by_their_ends():
    classes = {f"class {i}": 100 - i for i in range(20)}
    assert lines(classes=classes)["task"].endswith("13 more, class 19 81; largest / smallest 1.2")


def test_texts_with_different_labels_are_found_and_missing_labels_do_not_count():
    texts = np.array([7, 7, 8, 8, 9, 9, 7], np.uint64)
    assert conflicting(texts, ["a", "b", "a", "a", "a", None, "a"]).tolist() == [7]


def test_labels_that_look_like_one_spelt_twice():
    counts = Counter({"Sports": 500, "sports": 300, "bussiness": 3, "business": 400, "tech": 200})
    assert sorted(typos(counts)) == [["bussiness", "business"], ["sports", "Sports"]]


def test_labels_that_differ_by_a_number_or_are_both_frequent_are_no_typos():
    assert typos(Counter({"class 1": 500, "class 2": 3, "comp.sys.pc": 500, "comp.sys.mc": 490, "+": 5, "-": 5})) == []
