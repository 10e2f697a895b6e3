"""Which columns hold text, label and group, and what a cell of them is."""

from __future__ import annotations

from typing import Any, NamedTuple

from data.labels import Label
from data.rows import Rows
from errors import UserError


class Columns(NamedTuple):
    """The columns' names; `separator` splits one cell into several labels."""

    text: tuple[str, ...]
    label: str | None  # None: not read
    group: str | None
    separator: str | None

    def check(self, rows: Rows, *, labelled: bool) -> None:
        """Raise `UserError` for a column that is not there; an unlabelled test split needs no label."""
        wanted = [(name, "data.text") for name in self.text]
        if labelled and self.label is not None:
            wanted.append((self.label, "data.label"))
        if self.group is not None:
            wanted.append((self.group, "data.group"))
        for name, key in wanted:
            if name not in rows.columns:
                where = rows.place.rsplit(": ", 1)[0] or rows.where(0)
                there = ", ".join(map(str, rows.columns))
                raise UserError(
                    f"{where}: no column {name!r}, only {there}; set {key}=COLUMN, or add a first line with the columns' names"
                )

    def texts(self, rows: Rows) -> list[Any]:
        """The texts as strings, several columns as lists of strings; a missing one is empty."""
        columns = [[_string(rows, row, name) for row in range(len(rows.numbers))] for name in self.text]
        return columns[0] if len(columns) == 1 else [list(cells) for cells in zip(*columns, strict=True)]

    def labels(self, rows: Rows) -> list[Label]:
        """The labels as strings, numbers with a fraction as such, several as a tuple, missing ones as None."""
        if self.label is None or self.label not in rows.columns:
            return [None] * len(rows.numbers)
        return [self._label(rows, row, value) for row, value in enumerate(rows.columns[self.label])]

    def groups(self, rows: Rows) -> list[str | None]:
        """What says which rows stay together, or None."""
        if self.group is None:
            return [None] * len(rows.numbers)
        values = rows.columns.get(self.group, [None] * len(rows.numbers))
        return [None if value is None or value == "" or value != value else str(value) for value in values]

    def _label(self, rows: Rows, row: int, value: Any) -> Label:
        if self.separator is not None and isinstance(value, str):
            value = [part.strip() for part in value.split(self.separator) if part.strip()]
        if isinstance(value, (list, tuple)):
            return tuple(sorted({self._name(rows, row, part) for part in value}))
        if value is None or value == "" or value != value:
            return None
        if isinstance(value, float):
            return value
        return self._name(rows, row, value)

    def _name(self, rows: Rows, row: int, value: Any) -> str:
        if isinstance(value, (dict, list, tuple, bytes)) or value is None:
            raise UserError(f"{rows.where(row)}: the label {value!r} is neither a string nor a number")
        name = str(value).encode("utf-8", "replace").decode()
        if name != name.strip():
            raise UserError(f"{rows.where(row)}: the label {name!r} has blanks around it; remove them")
        return name


def _string(rows: Rows, row: int, column: str) -> str:
    value = rows.columns[column][row] if column in rows.columns else None
    if value is None or value != value:
        return ""
    if isinstance(value, (dict, list, tuple, bytes)):
        raise UserError(f"{rows.where(row)}: {column} is {type(value).__name__} ({str(value)[:40]}), not a text")
    return str(value).encode("utf-8", "replace").decode()  # a lone surrogate becomes "?"
