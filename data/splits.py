"""Fair splits: cut from train what is missing, the same for the same texts whatever their order."""

from __future__ import annotations

from collections import defaultdict
from hashlib import blake2b

from datasets import Dataset, DatasetDict

from errors import UserError

SHARE = 0.1  # of each class, for validation and for test


def complete_splits(splits: DatasetDict, *, seed: int) -> DatasetDict:
    """Cut a missing test and validation split from train, a tenth of each class each; then check the labels.

    Raises `UserError` for a single class, a class too small to cut, and a label that training lacks.
    """
    if missing := [name for name in ("test", "validation") if name not in splits]:
        parts = _cut(splits["train"], names=missing, seed=seed)
        splits = DatasetDict({**splits, **parts})
    known = set(splits["train"]["label"])
    if len(known) < 2:
        raise UserError(f"train: one class only ({', '.join(known)}); a classifier needs at least two")
    for name in ("validation", "test"):
        if unknown := sorted(set(splits[name]["label"]) - known):
            raise UserError(
                f"{name}: the label {unknown[0]!r} is not in train ({', '.join(sorted(known))}); correct it or add examples"
            )
    return splits


def _cut(table: Dataset, *, names: list[str], seed: int) -> DatasetDict:
    """Cut the named splits from `table`: of each class a tenth (at least one text) each, by the texts' seeded hashes."""
    by_class: dict[str, list[tuple[bytes, int]]] = defaultdict(list)
    for row, (text, label) in enumerate(zip(table["text"], table["label"], strict=True)):
        digest = blake2b(f"{seed} {text}".encode("utf-8", "surrogatepass")).digest()
        by_class[label].append((digest, row))
    rows_of: dict[str, list[int]] = defaultdict(list)
    for label, hashed in by_class.items():
        if len(hashed) <= len(names):
            raise UserError(
                f"class {label!r} has {len(hashed)} example{'s' * (len(hashed) > 1)}, too few to cut {' and '.join(names)} "
                f"from train: give at least {len(names) + 1}, or leave the class out"
            )
        rows = [row for _, row in sorted(hashed)]
        size = max(1, round(SHARE * len(rows)))
        for name in names:
            rows_of[name] += rows[:size]
            rows = rows[size:]
        rows_of["train"] += rows
    return DatasetDict({name: table.select(sorted(rows)) for name, rows in rows_of.items()})
