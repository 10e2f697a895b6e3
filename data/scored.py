"""What is added to rows that a classifier has read: the answers, and the names of their columns.

R rows, C classes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from data.rows import Rows
from errors import UserError

SEPARATOR = ";"  # between several labels in one cell, where training's files had none


class Decided(NamedTuple):
    """What a classifier says to R rows."""

    labels: list[Any]  # (R,) a string, a list of them, a number; None: abstained
    probability: np.ndarray | None  # (R,) of the answer; None where a text has several labels, or a score
    probabilities: np.ndarray | None  # (R, C); None for scores


class Added(NamedTuple):
    """Which columns are added."""

    classes: Sequence[str]  # one `p(CLASS)` each; none for scores
    one: bool  # whether an answer is one class, which has a probability
    separator: str = SEPARATOR

    def names(self, *, nested: bool) -> list[str]:
        """`predicted`, `probability`, and `p(CLASS)` for each class; nested, these are one column `probabilities`."""
        each = ["probabilities"] * bool(self.classes) if nested else [f"p({name})" for name in self.classes]
        return ["predicted", *["probability"] * self.one, *each]

    def check(self, rows: Rows, *, nested: bool) -> None:
        """Raise `UserError` where one of them is there already."""
        for name in self.names(nested=nested):
            if name in rows.columns:
                where = rows.place.rsplit(": ", 1)[0]
                raise UserError(f"{where}: the column {name!r}, which is to be added, is there already; rename it")


def numbers(decided: Decided, *, as_is: bool = False) -> list[Any]:
    """The columns of probabilities, as lists or arrays."""
    columns = [] if decided.probability is None else [decided.probability]
    columns += [] if decided.probabilities is None else list(decided.probabilities.T)
    return columns if as_is else [column.tolist() for column in columns]


def as_text(value: Any) -> str:
    """A cell's value in a format without types; what is missing is empty, what is nested is JSON."""
    if value is None:
        return ""
    return as_json(value) if isinstance(value, (dict, list)) else str(value)


def as_json(value: Any) -> str:
    """JSON; what it has no type for (a date) as a string."""
    return json.dumps(value, ensure_ascii=False, default=str)
