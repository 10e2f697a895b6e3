"""Fair splits: which rows go to train, validation and test, by the content of each row alone.

R rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from errors import UserError

SPLITS = ("train", "validation", "test")
TRAIN, VALIDATION, TEST = range(3)
SLOTS = {"test": (0.0, 0.1), "validation": (0.1, 0.2)}  # which tenth of the hashes a split takes


def fingerprint(content: str) -> int:
    """64 bits of a text: equal texts have equal ones, and different ones differ but once in millions of corpora."""
    return int.from_bytes(blake2b(content.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def cut(units: np.ndarray, classes: Sequence[Sequence[str]], *, names: Sequence[str]) -> np.ndarray:
    """Say for each row which split it goes to, 0 for train: about a tenth to each of `names`. Returns `(R,)` int8.

    `units (R,)` uint64 are seeded fingerprints of what must stay together: the text, or its group. Rows that are added
    do not move those that were there, since only a row's own unit decides. The exception are classes so small that a
    split would lack them: there the smallest unit moves. `classes` holds each row's classes, none for a score.
    Raises `UserError` for a class with too few units to be in every split.
    """
    share = units / 2.0**64  # (R,) even between 0 and 1
    split = np.zeros(len(units), np.int8)
    for name in names:
        low, high = SLOTS[name]
        split[(share >= low) & (share < high)] = SPLITS.index(name)
    for of_class, rows in rows_by_class(classes).items():
        fill(split, units, rows, wanted=[TRAIN, *map(SPLITS.index, names)], name=of_class)
    return split


def rows_by_class(classes: Sequence[Sequence[str]]) -> dict[str | None, np.ndarray]:
    """The rows of each class; where rows have none (a score), all of them under None."""
    found: dict[str | None, list[int]] = {}
    for row, of_row in enumerate(classes):
        for name in of_row or (None,):
            found.setdefault(name, []).append(row)
    if len(found) > 1:
        found.pop(None, None)  # rows without any of the labels are no class
    return {name: np.array(rows) for name, rows in sorted(found.items(), key=lambda item: str(item[0]))}


def fill(split: np.ndarray, units: np.ndarray, rows: np.ndarray, *, wanted: list[int], name: str | None) -> None:
    """Move a unit of these rows into each wanted split that has none of them."""
    for target in wanted:
        if (split[rows] == target).any():
            continue
        owners, counts = np.unique(split[rows], return_counts=True)
        spare = [s for s in owners if len(np.unique(units[rows][split[rows] == s])) > 1]
        if not spare:
            what = "the corpus" if name is None else f"class {name!r}"
            different = len(np.unique(units[rows]))
            raise UserError(
                f"{what} has {different} example{'s' * (different > 1)} (or groups) that differ, too few to cut "
                f"{' and '.join(SPLITS[s] for s in wanted if s)} from train: give at least {len(wanted)}, or leave it out"
            )
        giver = max(spare, key=lambda s: counts[owners == s])
        split[units == units[rows][split[rows] == giver].min()] = target
