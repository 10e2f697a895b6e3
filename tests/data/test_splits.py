from collections import Counter

import numpy as np
import pytest

from data.splits import SPLITS, cut, fingerprint
from errors import UserError

NAMES = ["test", "validation"]


def split(units: list[str], classes: list[str], names=NAMES) -> dict[str, str]:
    """Which split each unit went to."""
    hashes = np.array([fingerprint(unit) for unit in units], np.uint64)
    found = cut(hashes, [(name,) for name in classes], names=names)
    return {unit: SPLITS[number] for unit, number in zip(units, found, strict=True)}


TEXTS = [f"text {i}" for i in range(3000)]
CLASSES = ["abc"[i % 3] for i in range(3000)]


def test_about_a_tenth_goes_to_validation_and_to_test_of_each_class():
    found = split(TEXTS, CLASSES)
    for name in "abc":
        counts = Counter(found[text] for text, own in zip(TEXTS, CLASSES, strict=True) if own == name)
        assert all(70 <= counts[part] <= 130 for part in NAMES), counts  # 100 ± three deviations of a binomial


def test_rows_that_are_added_do_not_move_the_old_ones_whatever_the_order():
    before, after = split(TEXTS[:1000], CLASSES[:1000]), split(TEXTS[::-1], CLASSES[::-1])
    assert all(after[text] == part for text, part in before.items())


def test_a_split_that_is_given_is_not_cut_and_does_not_move_the_other():
    both, one = split(TEXTS, CLASSES), split(TEXTS, CLASSES, names=["validation"])
    assert {text for text in TEXTS if one[text] == "validation"} == {t for t in TEXTS if both[t] == "validation"}
    assert "test" not in one.values()


def test_equal_units_stay_together():
    units = [f"group {i // 10}" for i in range(3000)]
    hashes = np.array([fingerprint(unit) for unit in units], np.uint64)
    found = cut(hashes, [(name,) for name in CLASSES], names=NAMES)
    assert all(len(set(found[i : i + 10])) == 1 for i in range(0, 3000, 10))
    assert set(found) == {0, 1, 2}


@pytest.mark.parametrize("seed", range(20))
def test_a_class_of_three_is_in_every_split(seed):
    found = split([f"{seed} {i}" for i in range(6)], ["a", "b"] * 3)
    assert Counter(found[f"{seed} {i}"] for i in (0, 2, 4)) == Counter(train=1, validation=1, test=1)


def test_a_class_too_small_to_cut_is_named():
    with pytest.raises(UserError, match=r"class 'rare' has 1 example .*give at least 3"):
        split([*TEXTS, "alone"], [*CLASSES, "rare"])
    with pytest.raises(UserError, match=r"class 'rare' has 1 example .*give at least 2"):
        split([*TEXTS, "alone"], [*CLASSES, "rare"], names=["validation"])


def test_a_label_of_several_and_a_score_need_not_be_everywhere_but_no_split_is_empty():
    hashes = np.array([fingerprint(f"text {i}") for i in range(8)], np.uint64)
    assert set(cut(hashes, [()] * 8, names=NAMES)) == {0, 1, 2}
