"""Parquet and Arrow: rows with types, and the class names that `datasets` stores beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Features

from data.rows import ROWS, Rows, check_header, readable


def read_parquet(path: Path) -> Iterator[Rows]:
    """Read as many rows at a time; memory does not grow with the file."""
    with readable(path, binary=True):
        file = pq.ParquetFile(path)
        check_header(path, file.schema_arrow.names)
        yield from typed(f"{path}: row", class_names(file.schema_arrow), file.iter_batches(ROWS))


def read_arrow(path: Path) -> Iterator[Rows]:
    """An Arrow stream, as `datasets` writes, or an Arrow file (Feather); memory-mapped."""
    with readable(path, binary=True), pa.memory_map(str(path)) as source:
        try:
            stream = pa.ipc.open_stream(source)
            schema, batches = stream.schema, iter(stream)
        except pa.ArrowInvalid:
            file = pa.ipc.open_file(source)
            schema, batches = file.schema, map(file.get_batch, range(file.num_record_batches))
        check_header(path, schema.names)
        parts = (batch.slice(start, ROWS) for batch in batches for start in range(0, len(batch), ROWS))
        yield from typed(f"{path}: row", class_names(schema), parts)


def typed(place: str, features: Mapping[str, Any], batches: Iterable[Any]) -> Iterator[Rows]:
    """Rows of a table with types, of Arrow or by column: class numbers become class names, -1 a missing label."""
    start = 1
    for batch in batches:
        raw = batch if isinstance(batch, pa.RecordBatch) else None
        values_of = batch if raw is None else as_lists(raw)
        columns = {name: named(features.get(name), values) for name, values in values_of.items()}
        end = start + len(next(iter(columns.values()), ()))
        yield Rows(place, range(start, end), columns, raw)
        start = end


def as_lists(batch: pa.RecordBatch) -> dict[str, list]:
    """The columns as Python values."""
    return {name: as_list(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}


def as_list(column: pa.Array) -> list:
    """Python values; as strings where Python has none, as for a date in the year 300,000."""
    try:
        return column.to_pylist()
    except (OverflowError, ValueError):
        return column.cast(pa.string()).to_pylist()


def class_names(schema: pa.Schema) -> Features:
    """The columns' types as `datasets` knows them; none where it does not, since then it did not write the file."""
    try:
        return Features.from_arrow_schema(schema)
    except ValueError:
        return Features()


def named(kind: Any, values: list) -> list:
    """The names of class numbers, alone or in lists; anything else as it is."""
    if isinstance(kind, ClassLabel):
        return [None if value is None or value < 0 else kind.int2str(value) for value in values]
    if isinstance(getattr(kind, "feature", None), ClassLabel):
        return [None if value is None else named(kind.feature, value) for value in values]
    return values
