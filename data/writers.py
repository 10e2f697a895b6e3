"""Rows with answers beside them → CSV, TSV, JSON Lines or Parquet; the columns that were there stay as they are.

Where input and output are of one kind each row is written as it was read, byte for byte, and the answers are put behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from data.rows import Rows
from data.scored import Added, Decided, as_json, as_text, numbers

DIGITS = "%.6g"  # of a probability
SCORE_DIGITS = "%.9g"  # of a score: all that 32 bits hold


class DelimitedWriter:
    """CSV or TSV; `raw`: rows come as such lines. `start` stands before the header: a byte order mark, or nothing."""

    nested = False

    def __init__(
        self, file: BinaryIO, added: Added, *, delimiter: str, raw: bool, newline: str = "\n", start: str = ""
    ) -> None:
        self.file, self.added, self.delimiter, self.raw, self.newline = file, added, delimiter, raw, newline
        self.start: str | None = start  # None: the header is written
        digits = [DIGITS] * (added.one + len(added.classes))
        self.template = delimiter.join(["%s", "%s" if added.classes else SCORE_DIGITS, *digits]) + newline
        self.cells: dict[str | None, str] = {None: ""}

    def write(self, parts: Sequence[Rows], decided: Decided) -> None:
        """Write some rows, the header before the first."""
        head = (
            "" if self.start is None else self.start + self._line([*parts[0].columns, *self.added.names(nested=False)])
        )
        self.start = None
        whole = [line for rows in parts for line in (rows.raw if self.raw else self._lines(rows))]
        labels = decided.labels if not self.added.classes else [self._label(label) for label in decided.labels]
        body = "".join(map(self.template.__mod__, zip(whole, labels, *numbers(decided), strict=True)))
        self.file.write((head + body).encode())

    def _label(self, label: Any) -> str:
        name = self.added.separator.join(label) if isinstance(label, list) else label
        if name not in self.cells:
            self.cells[name] = self._cell(name)
        return self.cells[name]

    def _cell(self, value: Any) -> str:
        text = as_text(value)
        special = any(character in text for character in (self.delimiter, '"', "\r", "\n"))
        return '"' + text.replace('"', '""') + '"' if special else text

    def _line(self, values: Sequence[Any]) -> str:
        return self.delimiter.join(map(self._cell, values)) + self.newline

    def _lines(self, rows: Rows) -> list[str]:
        return [self.delimiter.join(map(self._cell, row)) for row in zip(*rows.columns.values(), strict=True)]

    def close(self) -> None:
        """Nothing is left to write."""


class JsonWriter:
    """JSON Lines; `raw`: rows come as such lines."""

    nested = True

    def __init__(self, file: BinaryIO, added: Added, *, raw: bool) -> None:
        self.file, self.added, self.raw = file, added, raw
        keys = [as_json(name).replace("%", "%%") for name in added.classes]
        each = ", ".join(f"{key}: {DIGITS}" for key in keys)
        names = ['"predicted": %s' if added.classes else f'"predicted": {SCORE_DIGITS}']
        names += [f'"probability": {DIGITS}'] * added.one + [f'"probabilities": {{{each}}}'] * bool(added.classes)
        self.template = "%s" + ", ".join(names) + "}\n"
        self.values: dict[Any, str] = {}  # labels as JSON

    def write(self, parts: Sequence[Rows], decided: Decided) -> None:
        """Write some rows."""
        whole = [line for rows in parts for line in (rows.raw if self.raw else self._lines(rows))]
        begun = [line[:-1].rstrip() for line in whole]
        begun = [line + ", " if len(line) > 1 else line for line in begun]  # of {} only { is left
        labels = decided.labels if not self.added.classes else [self._label(label) for label in decided.labels]
        body = "".join(map(self.template.__mod__, zip(begun, labels, *numbers(decided), strict=True)))
        self.file.write(body.encode())

    def _label(self, label: Any) -> str:
        key = tuple(label) if isinstance(label, list) else label
        if key not in self.values:
            self.values[key] = as_json(label)
        return self.values[key]

    def _lines(self, rows: Rows) -> list[str]:
        return [as_json(dict(zip(rows.columns, row, strict=True))) for row in zip(*rows.columns.values(), strict=True)]

    def close(self) -> None:
        """Nothing is left to write."""


class ParquetWriter:
    """Parquet; `raw`: rows come as record batches, whose types are kept. Otherwise all are strings."""

    nested = False

    def __init__(self, file: BinaryIO, added: Added, *, raw: bool) -> None:
        self.file, self.added, self.raw = file, added, raw
        self.writer: pq.ParquetWriter | None = None

    def write(self, parts: Sequence[Rows], decided: Decided) -> None:
        """Write some rows, as a row group."""
        if self.raw:
            table = pa.Table.from_batches([rows.raw for rows in parts])
        else:
            names = list(parts[0].columns)
            table = pa.table(
                {name: pa.array([v for rows in parts for v in rows.columns[name]], pa.string()) for name in names}
            )
        kind = pa.string() if self.added.one else pa.list_(pa.string()) if self.added.classes else pa.float64()
        columns = [
            pa.array(decided.labels, kind),
            *(pa.array(column, pa.float32()) for column in numbers(decided, as_is=True)),
        ]
        for name, column in zip(self.added.names(nested=False), columns, strict=True):
            table = table.append_column(name, column)
        self.writer = self.writer or pq.ParquetWriter(self.file, table.schema)
        self.writer.write_table(table)

    def close(self) -> None:
        """Write the file's end."""
        if self.writer is not None:
            self.writer.close()
