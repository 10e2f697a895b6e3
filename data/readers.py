"""Files of labelled texts → rows, a thousand at a time, each able to say where it stands.

CSV and JSON are read line by line, so that a cell stays the string it is and a mistake is named with its line.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from data.rows import ROWS, Rows, bad_line, check_header, lines, readable
from data.tables import read_arrow, read_parquet
from errors import UserError


def read_csv(path: Path, *, delimiter: str = ",") -> Iterator[Rows]:
    """Every cell stays the string it is ("007", "NA", ""); a blank line is no row."""
    csv.field_size_limit(2**31 - 1)  # a text may be longer than the 131,072 characters of the default
    with readable(path) as file:
        taken: list[str] = []  # the lines of the row that is read
        reader = csv.reader(kept(lines(path, file), taken), delimiter=delimiter, strict=True)
        begins = 1
        try:
            header = check_header(path, next(filter(None, reader), []))

            def rows() -> Iterator[tuple[int, list[str], str]]:
                nonlocal begins
                begins = reader.line_num + 1
                taken.clear()
                for cells in reader:
                    if cells and len(cells) != len(header):
                        raise UserError(
                            f"{path}: line {reader.line_num} has {len(cells)} cells and the header {len(header)}; put texts "
                            "with commas in double quotes"
                        )
                    if cells:
                        yield reader.line_num, cells, "".join(taken).rstrip("\r\n")
                    begins = reader.line_num + 1
                    taken.clear()

            rest = rows()
            while part := list(islice(rest, ROWS)):
                numbers, cells, raw = zip(*part, strict=True)
                columns = dict(zip(header, map(list, zip(*cells, strict=True)), strict=True))
                yield Rows(f"{path}: line", numbers, columns, raw)
        except csv.Error as error:
            raise UserError(
                f"{path}: the row that begins at line {begins}: {error}; close every double quote, double those within"
            ) from error


def read_json(path: Path) -> Iterator[Rows]:
    """One array of objects, or one object a line (JSON Lines); a key that a row lacks is missing there.

    Whole numbers come as strings: as labels they are names, and Python reads none of more than 4,300 digits.
    """
    with readable(path) as file:
        start = next((line for line in file if line.strip()), "")
        file.seek(0)
        try:
            if start.lstrip("\ufeff \t").startswith("["):
                rows = enumerate(json.load(file, parse_int=str), 1)
                objects: Iterator[tuple[int, Any, str]] = ((number, row, "") for number, row in rows)
                place = f"{path}: row"
            else:
                numbered = enumerate(lines(path, file), 1)
                objects = ((n, json.loads(line, parse_int=str), line.strip()) for n, line in numbered if line.strip())
                place = f"{path}: line"
            number = 0
            while part := list(islice(objects, ROWS)):
                for number, row, _ in part:
                    if not isinstance(row, dict):
                        raise UserError(f'{place} {number} is no object; write it as {{"text": "…", "label": "…"}}')
                names = dict.fromkeys(name for _, row, _ in part for name in row)
                columns = {name: [row.get(name) for _, row, _ in part] for name in names}
                yield Rows(place, [number for number, _, _ in part], columns, [line for _, _, line in part])
        except (UserError, UnicodeDecodeError):
            raise
        except ValueError as error:  # not JSON, or a number of more digits than Python takes
            what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            line: int | str = (
                getattr(error, "lineno", "?")
                if start.lstrip("\ufeff \t").startswith("[")
                else bad_line(path, lambda line: line.strip() and json.loads(line))
            )
            raise UserError(f"{path}: line {line} is not JSON ({what}); correct it") from error
        except RecursionError as error:
            raise UserError(f"{path}: nested too deeply to be rows of text and label") from error


def kept(lines_read: Iterator[str], taken: list[str]) -> Iterator[str]:
    """Yield the lines, each put into `taken` as well."""
    for line in lines_read:
        taken.append(line)
        yield line


def read_folder(folder: Path) -> Iterator[Rows]:
    """One subfolder a class, one file a text."""
    paths = sorted(path for path in folder.glob("*/*") if path.is_file() and not path.name.startswith("."))
    if not paths:
        raise UserError(f"{folder}: no subfolder with texts; give one subfolder a class, or files as {folder}/*.csv")
    for start in range(0, len(paths), ROWS):
        part = paths[start : start + ROWS]
        texts = [read_text(path) for path in part]
        yield Rows("", part, {"text": texts, "label": [path.parent.name for path in part]})


def read_text(path: Path) -> str:
    """A whole file. Raises `UserError` when it is not UTF-8."""
    with readable(path) as file:
        return "".join(lines(path, file))


READERS: dict[str, Callable[[Path], Iterator[Rows]]] = {
    ".csv": read_csv,
    ".tsv": partial(read_csv, delimiter="\t"),
    ".json": read_json,
    ".jsonl": read_json,
    ".ndjson": read_json,
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
}


def read(path: Path) -> Iterator[Rows]:
    """Read a folder with a subfolder a class, or a file by the end of its name (`.gz` after it is unpacked).

    Raises `UserError` with file and line for what cannot be read.
    """
    if path.is_dir():
        return read_folder(path)
    suffix = Path(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix
    if suffix.lower() not in READERS:
        raise UserError(f"{path}: the name must end in one of {' '.join(READERS)} (.csv.gz works too), or be a folder")
    return READERS[suffix.lower()](path)
