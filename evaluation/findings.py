"""What a run's report says, as plain values: `report.json`, and what `evaluation/page.py` shows.

R texts, C classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer

from evaluation.answers import Answers
from evaluation.calibration import coverage_curve, label_sets, reliability, suspects
from model.task import SingleLabel

MOST_ERRORS, MOST_SUSPECTS, MOST_POINTS, MOST_CLASSES = 20, 100, 1000, 25


def findings(task: SingleLabel, test: Answers, validation: Answers) -> dict[str, Any]:
    """The report's sections on predictions, those that the task has and that have texts with labels."""
    found: dict[str, Any] = {}
    if len(test.rows):
        found |= {"lengths": by_length(task, test), "errors": worst(task, test)}
        if task.name == "regression":
            some = np.linspace(0, len(test.rows) - 1, min(len(test.rows), MOST_POINTS)).astype(int)
            found["scores"] = [[float(test.truth[i]), float(test.predicted[i])] for i in some]
        else:
            found["classes"] = per_class(task, test)
        if task.name == "single_label":
            found |= {"confusion": confusion(task.labels, test), **calibration(test)}
        if task.in_set_from is not None:
            sizes = label_sets(test.probabilities, task.in_set_from).sum(axis=1)
            found["label_sets"] = [[int(size), int((sizes == size).sum())] for size in np.unique(sizes)]
    if task.name == "single_label":
        found["suspects"] = suspected(task.labels, [part for part in (validation, test) if len(part.rows)])
    return found


def calibration(test: Answers) -> dict[str, Any]:
    """Reliability before and after the temperature, and accuracy by the share of texts that are answered."""
    confidence, right = test.probabilities.max(axis=1), test.right()
    bins = {"before": reliability(test.before.max(axis=1), right), "after": reliability(confidence, right)}
    covered, accuracy = coverage_curve(confidence, right)
    some = np.unique(np.linspace(0, len(covered) - 1, 200).astype(int))
    return {
        "reliability": {
            name: [[int(n), float(c), float(a)] for n, c, a in zip(*of, strict=True) if n] for name, of in bins.items()
        },
        "coverage": [[float(covered[i]), float(accuracy[i])] for i in some],
    }


def confusion(labels: list[str], test: Answers) -> dict[str, Any]:
    """How often each class, a row, was taken for each, a column; of many classes those with the most errors."""
    counts = confusion_matrix(test.truth, test.predicted, labels=labels)
    wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    some = np.sort(np.argsort(-wrong, kind="stable")[:MOST_CLASSES])
    return {
        "labels": [labels[i] for i in some],
        "of": len(labels),
        "counts": counts[np.ix_(some, some)].tolist(),
    }


def per_class(task: SingleLabel, test: Answers) -> list[dict[str, Any]]:
    """Precision, recall, F1 and number of true texts of each label."""
    truth, predicted = test.truth, test.predicted
    if task.name == "multi_label":
        binarizer = MultiLabelBinarizer(classes=task.labels).fit([])
        truth, predicted = binarizer.transform(truth), binarizer.transform(predicted)
    labels = list(range(len(task.labels))) if task.name == "multi_label" else task.labels
    columns = precision_recall_fscore_support(truth, predicted, labels=labels, zero_division=0)
    return [
        {"label": label, "precision": float(p), "recall": float(r), "f1": float(f), "count": int(n)}
        for label, p, r, f, n in zip(task.labels, *columns, strict=True)
    ]


def by_length(task: SingleLabel, test: Answers) -> list[dict[str, float]]:
    """Accuracy (share of exactly right sets, mean absolute error) in fifths of the texts by their number of words."""
    words = np.array([len(text.split()) for text in test.texts])
    value = how_far(task, test) if task.name == "regression" else test.right()
    fifth = np.searchsorted(np.unique(np.quantile(words, [0.2, 0.4, 0.6, 0.8])), words)
    parts = [np.flatnonzero(fifth == number) for number in np.unique(fifth)]
    return [
        {"from": int(words[p].min()), "to": int(words[p].max()), "n": len(p), "value": float(value[p].mean())}
        for p in parts
    ]


def how_far(task: SingleLabel, test: Answers) -> np.ndarray:
    """How far off each answer is, `(R,)`: the wrong answer's probability, the largest error of a label's, the score's error.

    -1 where the answer is right.
    """
    if task.name == "regression":
        return np.abs(np.asarray(test.truth, float) - np.asarray(test.predicted, float))
    far = test.probabilities.max(axis=1)
    if task.name == "multi_label":
        on = MultiLabelBinarizer(classes=task.labels).fit([]).transform(test.truth)
        far = np.abs(test.probabilities - on).max(axis=1)
    return np.where(test.right(), -1.0, far)


def worst(task: SingleLabel, test: Answers) -> list[dict[str, Any]]:
    """The errors that were most confident, or largest."""
    far = how_far(task, test)
    return [
        {**test.place(i), "truth": test.truth[i], "predicted": test.predicted[i], "how_far": float(far[i])}
        for i in np.argsort(-far, kind="stable")[:MOST_ERRORS]
        if far[i] > 0
    ]


def suspected(labels: list[str], parts: list[Answers]) -> list[dict[str, Any]]:
    """Texts of validation and test whose labels are suspected wrong, the most suspect first."""
    probabilities = np.concatenate([part.probabilities for part in parts])
    numbers = np.concatenate([part.numbers(labels) for part in parts])
    where = [(part, i) for part in parts for i in range(len(part.rows))]
    found = []
    for row in suspects(probabilities, numbers)[:MOST_SUSPECTS]:
        part, i = where[row]
        likely = int(probabilities[row].argmax())
        found.append(
            {
                **part.place(i),
                "label": part.truth[i],
                "probability": float(probabilities[row, numbers[row]]),
                "rather": labels[likely],
                "rather_probability": float(probabilities[row, likely]),
            }
        )
    return found
