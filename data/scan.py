"""The first reading of a source: what is kept of each row to decide where it goes, without its text.

R rows of one split.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from data.columns import Columns
from data.labels import Label
from data.sources import Source
from data.splits import SPLITS, TEST, TRAIN, VALIDATION, fingerprint
from errors import UserError

DROPPED = -1  # where a row goes that goes nowhere


class Scan(NamedTuple):
    """What is kept of a split after the first reading."""

    texts: np.ndarray  # (R,) uint64, equal for equal texts
    units: np.ndarray  # (R,) uint64, equal for what must stay in one split
    labels: list[Label]  # (R,)
    n_empty: int


def scan(source: Source, name: str, columns: Columns, seed: int) -> Scan:
    """Read one split; every row but those of test needs a label."""
    texts: list[int] = []
    units: list[int] = []
    labels: list[Label] = []
    n_empty = 0
    place = None
    for rows in source.splits[name]():
        if rows.place != place:
            columns.check(rows, labelled=name != "test")
            place = rows.place
        of_rows = columns.labels(rows)
        if name != "test" and columns.label is not None and None in of_rows:
            raise UserError(f"{rows.where(of_rows.index(None))}: no {columns.label}; fill it in or remove the row")
        labels += of_rows
        for text, group in zip(columns.texts(rows), columns.groups(rows), strict=True):
            whole = joined(text)
            n_empty += not whole.strip("\0 \t\r\n")
            texts.append(fingerprint(whole))
            units.append(fingerprint(f"{seed} {whole if group is None else group}"))
    if not texts:
        raise UserError(f"{source.name}: there is no row in {name}; add texts")
    return Scan(np.array(texts, np.uint64), np.array(units, np.uint64), labels, n_empty)


def find_leaks(scans: dict[str, Scan], split: dict[str, np.ndarray], *, drop: bool) -> int:
    """Count the rows of train whose text stands in validation or test too, and those of validation in test; drop them."""
    texts, where = np.concatenate([s.texts for s in scans.values()]), np.concatenate(list(split.values()))
    seen, n_leaks = texts[where == TEST], 0
    for part in (VALIDATION, TRAIN):
        own = texts[where == part]
        for name, s in scans.items():
            leaked = (split[name] == part) & np.isin(s.texts, seen)
            n_leaks += int(leaked.sum())
            if drop:
                split[name][leaked] = DROPPED
        seen = np.concatenate([seen, own])
    for part, name in enumerate(SPLITS):
        if not any((rows == part).any() for rows in split.values()):
            raise UserError(f"{name}: every text of it stands in another split too; give texts of its own")
    return n_leaks


def joined(text: Any) -> str:
    """One string for a text of one or several columns."""
    return text if isinstance(text, str) else "\0".join(text)
