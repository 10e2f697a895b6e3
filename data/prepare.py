"""From any source to three sound splits on disk: read once to look, once more to write; memory holds no texts.

R rows of one split.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import Dataset, DatasetDict

from data.cache import cached, digest
from data.check import conflicting, typos
from data.columns import Columns
from data.labels import check_classes, choose_task, classes_of, in_order, label_values
from data.near import near_copies
from data.scan import Scan, find_leaks, joined, scan
from data.sources import Source
from data.splits import SPLITS, TRAIN, cut, fingerprint
from data.writing import write_splits
from errors import UserError

log = logging.getLogger("heed")
VERSION = 1  # of what this file writes; raised when it changes


class Prepared(NamedTuple):
    """The splits with the columns `text` and `label`, what was found in them, and a key of the whole content.

    `stream()` yields what follows on train of a streamed source, as `(text, label)`.
    """

    splits: DatasetDict
    facts: dict[str, Any]
    key: str
    stream: Callable[[], Iterator[tuple[Any, Any]]] | None = None


def prepared(
    source: Source, columns: Columns, *, task: str | None, split_seed: int, drop_leaks: bool, cache_dir: str
) -> Prepared:
    """Prepare the source, or take what was prepared from the same content with the same settings."""
    log.info("data        %s", source.name)
    settings = {"columns": columns, "task": task, "split_seed": split_seed, "drop_leaks": drop_leaks}
    key = digest(VERSION, source.key, sorted(settings.items()))
    write = partial(prepare, source, columns, task=task, split_seed=split_seed, drop_leaks=drop_leaks)
    (splits, facts), _ = cached(cache_dir, f"texts-{key}", build=write, read=open_splits)
    facts["source"] = source.name  # the same content may lie elsewhere now
    stream = partial(streamed, source, columns, splits, facts) if source.stream is not None else None
    return Prepared(splits, facts, key, stream)


def streamed(source: Source, columns: Columns, splits: DatasetDict, facts: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield text and label of the rows behind the head of train, without those that validation or test hold."""
    assert source.stream is not None
    held = {fingerprint(joined(text)) for name in ("validation", "test") for text in splits[name]["text"]}
    for rows in source.stream():
        labels = label_values(rows, columns.labels(rows), facts["task"], set(facts["labels"]), part="train")
        for text, label in zip(columns.texts(rows), labels, strict=True):
            if fingerprint(joined(text)) not in held:
                yield text, label


def open_splits(folder: Path) -> tuple[DatasetDict, dict[str, Any]]:
    """Memory-map what `prepare` wrote."""
    splits = DatasetDict({name: Dataset.from_file(str(folder / f"{name}.arrow")) for name in SPLITS})
    return splits, json.loads((folder / "facts.json").read_text(encoding="utf-8"))


def prepare(
    source: Source, columns: Columns, folder: Path, *, task: str | None, split_seed: int, drop_leaks: bool
) -> None:
    """Write `train.arrow`, `validation.arrow`, `test.arrow` and `facts.json`, or raise `UserError`."""
    scans = {name: scan(source, name, columns, split_seed) for name in SPLITS if name in source.splits}
    if all(s.n_empty == len(s.texts) for s in scans.values()):
        raise UserError(f"{source.name}: every text is empty; check data.text={','.join(columns.text)}")
    task = choose_task((label for s in scans.values() for label in s.labels), asked=task)
    check_classes(scans["train"].labels, task)  # before a class is too small to cut
    missing = [name for name in ("test", "validation") if name not in scans]
    split = {name: np.full(len(s.texts), SPLITS.index(name), np.int8) for name, s in scans.items()}
    if missing:
        split["train"] = cut(scans["train"].units, classes_of(scans["train"].labels, task), names=missing)
    n_leaks = find_leaks(scans, split, drop=drop_leaks)
    train_labels = [label for label, s in zip(scans["train"].labels, split["train"], strict=True) if s == TRAIN]
    counts = Counter(name for names in classes_of(train_labels, task) for name in names)
    labels = ["score"] if task == "regression" else in_order(counts)
    check_classes(train_labels, task)  # again: leaks may have taken a class
    conflict = conflicting(
        np.concatenate([s.texts for s in scans.values()]), [label for s in scans.values() for label in s.labels]
    )
    example = write_splits(source, columns, scans, split, folder, task=task, labels=labels, conflict=conflict)
    facts = {
        "source": source.name,
        "task": task,
        "labels": labels,
        "classes": {label: counts[label] for label in labels} if task != "regression" else {},
        "cut_from_train": missing[::-1],
        "leaks": {"found": n_leaks, "dropped": n_leaks if drop_leaks else 0},
        "conflicts": {"texts": len(conflict), "example": example},
        "typos": typos(counts),
        **counted(scans, folder),
    }
    (folder / "facts.json").write_text(json.dumps(facts, indent=2), encoding="utf-8")


def counted(scans: dict[str, Scan], folder: Path) -> dict[str, dict[str, Any]]:
    """What is counted in each split, as read (copies, empty texts) or as written."""
    splits = {name: Dataset.from_file(str(folder / f"{name}.arrow")) for name in SPLITS}
    near = {name: near_copies(splits[name], splits["train"]) for name in ("validation", "test")}
    return {
        "rows": {name: len(table) for name, table in splits.items()},
        "unlabelled": {name: table.data.column("label").null_count for name, table in splits.items()},
        "duplicates": {name: len(s.texts) - len(np.unique(s.texts)) for name, s in scans.items()},
        "empty": {name: s.n_empty for name, s in scans.items()},
        "near_duplicates": {name: np.flatnonzero(rows).tolist() for name, rows in near.items()},
    }
