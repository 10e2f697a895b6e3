"""Files of texts by the end of their name: how their rows are read, and where rows with answers are written."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from data.readers import read
from data.rows import ROWS, Rows, lines, readable
from data.scored import Added
from data.writers import DelimitedWriter, JsonWriter, ParquetWriter
from errors import UserError

STDIN = "-"
CHUNK = 16_384  # rows that are read together, so that batches hold texts of one length
CHARACTERS = 8_000_000  # of them, about
KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}  # that are written too
READ = {**KINDS, ".json": "json", ".txt": "lines"}


def kind_of(source: str) -> str:
    """What kind of file `source` is. Raises `UserError` where it is not there or of a kind that is not read."""
    path = Path(source)
    if source == STDIN:
        return "lines"
    if not path.is_file():
        what = "this is a folder" if path.is_dir() else "no such file"
        raise UserError(f"--input {source}: {what}; give the path of a file, or - for standard input")
    packed = path.suffix.lower() == ".gz"
    suffix = Path(path.stem if packed else path).suffix.lower()
    if suffix not in READ or (packed and suffix == ".parquet"):
        raise UserError(
            f"--input {source}: the name must end in one of {' '.join(READ)} (texts also packed, as .csv.gz)"
        )
    return READ[suffix]


def check_output(output: Path | None, kind: str, *, force: bool) -> str:
    """The kind that is written: that of `output`, else of what is read. Raises `UserError` where it cannot be."""
    if output is None:
        if kind == "parquet" and sys.stdout.isatty():
            raise UserError("Parquet is nothing for a terminal: give --output FILE")
        return "tsv" if kind == "lines" else kind
    if output.suffix.lower() not in KINDS:
        raise UserError(f"--output {output}: the name must end in one of {' '.join(KINDS)}")
    wanted = KINDS[output.suffix.lower()]
    if kind == "json" and wanted != "json":
        raise UserError(f"--output {output}: rows of JSON need not have the same columns; let the name end in .jsonl")
    if not output.parent.is_dir():
        raise UserError(f"--output {output}: there is no folder {output.parent}; make it first")
    if output.is_dir() or (output.exists() and not force):
        raise UserError(f"--output {output}: this exists; give another name, or --force to replace it")
    return wanted


def rows_of(source: str, kind: str, names: Sequence[str]) -> Iterator[Rows]:
    """The rows; of plain lines each is a text, its parts, the columns `names`, parted by tabs."""
    if source == STDIN:
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
        return rows_of_lines("standard input", sys.stdin, names)
    if kind == "lines":
        return lines_of_file(Path(source), names)
    return lines_alone(read(Path(source))) if kind == "json" else read(Path(source))


def lines_of_file(path: Path, names: Sequence[str]) -> Iterator[Rows]:
    """Read a file of plain lines."""
    with readable(path) as file:
        yield from rows_of_lines(str(path), lines(path, file), names)


def rows_of_lines(place: str, texts: Iterator[str], names: Sequence[str]) -> Iterator[Rows]:
    """Plain lines as rows. Raises `UserError` for one with other than as many parts as `names`."""
    start = 1
    while part := [line.rstrip("\r\n") for line in islice(texts, ROWS)]:
        cells = [part] if len(names) == 1 else list(zip(*(line.split("\t") for line in part), strict=False))
        if len(names) > 1:
            for row, line in enumerate(part, start):
                if line.count("\t") != len(names) - 1:
                    raise UserError(
                        f"{place}: line {row} has not {len(names)} parts ({', '.join(names)}); part them by tabs"
                    )
        yield Rows(
            f"{place}: line", range(start, start + len(part)), dict(zip(names, map(list, cells), strict=True)), part
        )
        start += len(part)


def lines_alone(parts: Iterator[Rows]) -> Iterator[Rows]:
    """The rows of JSON Lines. Raises `UserError` for those of an array, which is read whole and has no lines."""
    for rows in parts:
        if not rows.raw[0]:
            raise UserError(f"{rows.place.rsplit(': ', 1)[0]}: this is one array; write one object a line (JSON Lines)")
        yield rows


def make_writer(file: BinaryIO, added: Added, *, source: str, kind: str, wanted: str) -> Any:
    """What writes rows of the kind `wanted`, those of the same kind as they were read."""
    raw = kind == wanted
    if wanted == "json":
        return JsonWriter(file, added, raw=raw)
    if wanted == "parquet":
        return ParquetWriter(file, added, raw=raw)
    start, newline = ("", "\n") if not raw else style(Path(source))
    return DelimitedWriter(
        file, added, delimiter="," if wanted == "csv" else "\t", raw=raw, newline=newline, start=start
    )


def style(path: Path) -> tuple[str, str]:
    """The byte order mark or nothing, and the end of a line, as the file has them."""
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as file:
        first = file.readline(2**20)
    return "\ufeff" * first.startswith(b"\xef\xbb\xbf"), "\r\n" if first.endswith(b"\r\n") else "\n"


def chunks(rows: Iterable[Rows]) -> Iterator[list[Rows]]:
    """Several parts of a file at a time: at most `CHUNK` rows, fewer where they are long."""
    parts: list[Rows] = []
    n_rows = size = 0
    for some in rows:
        n_rows += len(some.numbers)
        size += some.raw.nbytes if hasattr(some.raw, "nbytes") else sum(map(len, some.raw))
        parts.append(some)
        if n_rows + len(some.numbers) > CHUNK or size > CHARACTERS:
            yield parts
            parts, n_rows, size = [], 0, 0
    if parts:
        yield parts


def ahead(pieces: Iterator[list[Rows]], source: str) -> Iterator[list[Rows]]:
    """The same, the next one of a file read by another thread while this one is used."""
    if source == STDIN:  # which may give nothing for long, and Ctrl-C would wait for it
        yield from pieces
        return
    with ThreadPoolExecutor(max_workers=1) as reader:
        coming = reader.submit(next, pieces, None)
        while (parts := coming.result()) is not None:
            coming = reader.submit(next, pieces, None)
            yield parts
