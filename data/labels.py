"""What the labels mean: which task they pose, its classes in order, and the numbers the loss compares with.

R texts, C labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from data.rows import Rows
from errors import UserError

TASKS = ("single_label", "multi_label", "regression", "mlm")
LONGEST_NUMBER = 4300  # digits that Python turns into a number
MOST_CLASSES = 20  # decimal numbers of more different values than this are a score, of fewer they may be classes

Label = str | float | tuple[str, ...] | None  # None: not labelled


def choose_task(labels: Iterable[Label], *, asked: str | None) -> str:
    """The task the labels pose where `asked` does not say: lists → multi_label, decimal fractions → regression.

    Raises `UserError` for a task that is unknown or that the labels do not allow.
    """
    if asked is not None and asked not in TASKS:
        raise UserError(f"task={asked} is unknown: choose one of {', '.join(TASKS)}, or null to let the data choose")
    if asked == "mlm":  # labels are not read
        return asked
    different = set(labels) - {None}
    if any(isinstance(label, tuple) for label in different):
        if asked in ("single_label", "regression"):
            raise UserError(f"task={asked}: the labels are lists; leave task or data.separator out")
        return "multi_label"
    if asked == "multi_label":
        raise UserError("task=multi_label: the labels are no lists; say what parts them, as data.separator=';'")
    if asked is not None:
        return asked
    if any(isinstance(label, float) and not label.is_integer() for label in different):
        return "regression"
    numbers = [number(label) for label in different]
    all_numbers = len(different) > MOST_CLASSES and None not in numbers
    return "regression" if all_numbers and any(value % 1 for value in numbers if value is not None) else "single_label"


def number(label: Label) -> float | None:
    """The finite number a label stands for, or None."""
    try:
        value = float(label)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def class_name(label: Label) -> Label:
    """A class as a string: spreadsheets and pandas turn 1 into 1.0 where a cell is empty."""
    if isinstance(label, float):
        return str(int(label)) if label.is_integer() else str(label)
    return label


def in_order(labels: Iterable[str]) -> list[str]:
    """Classes in the order they keep everywhere: by number where all are whole numbers, by name otherwise."""
    names = set(labels)
    whole = all(name.removeprefix("-").isdecimal() and len(name) < LONGEST_NUMBER for name in names)
    return sorted(names, key=(lambda name: (int(name), name)) if whole else None)


def classes_of(labels: list[Label], task: str) -> list[tuple[str, ...]]:
    """Each row's classes: one, several, or for a score and without labels none."""
    if task in ("regression", "mlm"):
        return [()] * len(labels)
    return [label if isinstance(label, tuple) else (str(class_name(label)),) for label in labels]


def check_classes(train_labels: list[Label], task: str) -> None:
    """Raise `UserError` for labels of which nothing can be learned."""
    if task == "mlm":
        return
    labels = in_order(name for names in classes_of(train_labels, task) for name in names)
    if task == "regression":
        if len(set(train_labels)) < 2:
            raise UserError(f"train: every label is {train_labels[0]}; a score needs at least two values")
        values = [value for value in map(number, train_labels) if value is not None]
        largest, spread = max(map(abs, values), default=0.0), max(values, default=0.0) - min(values, default=0.0)
        if values and not (largest < 1e18 and spread > 1e-6 * largest):
            raise UserError(
                f"train: scores from {min(values):g} to {max(values):g} are too large or too close together for 32 bits; "
                "subtract their mean and divide by their spread"
            )
    elif len(labels) < 2:
        raise UserError(f"train: one class only ({', '.join(labels)}); a classifier needs at least two")
    elif len(labels) > 2 and len(labels) >= len(train_labels):
        raise UserError(
            f"train: {len(labels)} different labels on {len(train_labels)} rows ({', '.join(labels[:3])}, …): the label "
            "column looks like an id or a text; choose another with data.label=COLUMN"
        )


def label_values(rows: Rows, labels: list[Label], task: str, known: set[str], *, part: str) -> Iterator[Any]:
    """The labels as the task takes them; in test, -1 is no label unless training has it."""
    for row, label in enumerate(labels):
        if task == "mlm":
            yield None
            continue
        if task == "regression":
            value = number(label)
            if value is None and label is not None:
                raise UserError(f"{rows.where(row)}: the label {label!r} is no number, as task=regression needs")
            yield value
            continue
        names = label if isinstance(label, tuple) else (class_name(label),)
        if part == "test" and (names == (None,) or (names == ("-1",) and "-1" not in known)):
            yield None
            continue
        for name in names:
            if name not in known:
                raise UserError(
                    f"{rows.where(row)}: the label {name!r} is not in train ({', '.join(sorted(known)[:20])}); correct it "
                    "or add examples to train"
                )
        yield list(names) if task == "multi_label" else names[0]


def targets(values: Sequence[Any], labels: Sequence[str], task: str) -> Tensor:
    """What the loss compares with: class numbers `(R,)`, True and False `(R, C)` of several labels, or scores `(R,)`.

    A text without a label gets -1, False throughout, or NaN.
    """
    if task == "regression":
        return torch.tensor([float("nan") if value is None else value for value in values])
    number = {label: i for i, label in enumerate(labels)}
    if task in ("single_label", "mlm"):
        return torch.tensor([number.get(value, -1) for value in values])
    on = np.zeros((len(values), len(labels)), bool)
    for row, names in enumerate(values):
        on[row, [number[name] for name in names or ()]] = True
    return torch.from_numpy(on)
