"""How far a long job is, on a terminal alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from data.rows import Rows


@contextmanager
def progress(source: str) -> Iterator[Callable[[Sequence[Rows]], None]]:
    """A bar on standard error while rows of the file `source` are read; call what it gives with those that are done.

    None where standard error is no terminal. What is packed, and standard input, has no known end.
    """
    if not sys.stderr.isatty():
        yield lambda parts: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    path = Path(source)
    known = path.is_file() and path.suffix.lower() not in (".gz", ".parquet")
    total = path.stat().st_size if known else rows_in(path)
    what = TextColumn("{task.fields[rows]:,} texts")
    columns = (what, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, rows=0)

        def advance(parts: Sequence[Rows]) -> None:
            n_rows = sum(len(rows.numbers) for rows in parts)
            size = sum(len(line.encode()) + 1 for rows in parts for line in rows.raw) if known else n_rows
            bar.update(task, advance=size, rows=bar.tasks[0].fields["rows"] + n_rows)

        yield advance


def rows_in(path: Path) -> int | None:
    """How many rows a Parquet file has; None for anything else."""
    if path.suffix.lower() != ".parquet":
        return None
    import pyarrow.parquet as pq

    return pq.ParquetFile(path).metadata.num_rows
