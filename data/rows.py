"""Rows of labelled texts, a thousand at a time, and the opening of files that may be no text at all."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pyarrow as pa

from errors import UserError

ROWS = 1000  # rows held at a time


class Rows(NamedTuple):
    """Some rows of one file, by column; `where` says where a row stands.

    `raw` holds them as the file does, for who writes them again: lines without their ends, or a batch of Parquet.
    """

    place: str  # "mine.csv: line"
    numbers: Sequence[object]  # what stands after it, a row each
    columns: dict[str, list]
    raw: Any = None

    def where(self, row: int) -> str:
        return f"{self.place} {self.numbers[row]}".strip()


def check_header(path: Path, header: list[str]) -> list[str]:
    """Raise `UserError` for a header that is missing or names a column twice."""
    if not header:
        raise UserError(f"{path}: the file is empty; it needs a first line that names the columns, and rows")
    if repeated := sorted({name for name in header if header.count(name) > 1}):
        raise UserError(f"{path}: the column {', '.join(repeated)} is there more than once; rename or drop one")
    return header


@contextmanager
def readable(path: Path, *, binary: bool = False) -> Iterator[TextIO]:
    """Open a file as UTF-8 text, unpacked where it is gzip; turn what goes wrong in reading it into a `UserError`."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rb") as raw:
            if not binary and raw.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                raise UserError(f"{path}: this is UTF-16; save the file as UTF-8")
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        line = bad_line(path, bytes.decode)
        raise UserError(
            f"{path}: line {line} is not UTF-8 (byte {error.object[error.start]:#04x}); save the file as UTF-8"
        ) from error
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise UserError(f"{path}: unreadable ({reason}); write or copy the file again") from error


def lines(path: Path, file: TextIO) -> Iterator[str]:
    """Yield the lines; a NUL byte, the mark of a binary file, is refused."""
    for number, line in enumerate(file, 1):
        if "\0" in line:
            raise UserError(
                f"{path}: line {number} holds a NUL byte; this is no text file, or UTF-16: save it as UTF-8"
            )
        yield line


def bad_line(path: Path, parse: Callable[[Any], Any]) -> int | str:
    """The number of the first line that `parse` refuses."""
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                parse(line)
            except ValueError:
                return number
    return "?"
