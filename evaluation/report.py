"""The end of a run: the test split once, the baselines beside it, where the files are, what to do next."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict

from encoding import plain
from evaluation.baseline import MOST_TEXTS, constant_baseline, linear_baseline
from evaluation.metrics import SCORES, sentence
from files import write_whole
from model.text_classifier import TextClassifier

log = logging.getLogger("heed")


def write_report(
    classifier: TextClassifier, splits: DatasetDict, facts: dict[str, Any], run_dir: Path, *, started: float
) -> None:
    """Score `classifier` and the two baselines on the test texts, log the lines, and write `metrics.json`.

    Test texts without a label go to `predictions.jsonl` with what was predicted; those that are nearly in training are
    also left out of a second score. `started` is the run's first moment on `time.perf_counter`, in seconds.
    """
    task, test = classifier.task.name, splits["test"]
    predictions = classifier.predict(test["text"][:])
    labels = test["label"][:]
    scored = np.array([label is not None for label in labels])
    predicted = [prediction.label for prediction in predictions]
    metrics: dict[str, float] = {}
    if scored.any():
        rows = np.flatnonzero(scored)
        metrics |= _score("test", task, labels, predicted, rows, f"on {len(rows):,} texts")
        near = facts["near_duplicates"]["test"]
        apart = np.setdiff1d(rows, near)
        if len(apart) and len(apart) < len(rows):
            what = f"without {len(rows) - len(apart):,} that are nearly in train"
            metrics |= _score("apart", task, labels, predicted, apart, what)
        metrics |= _baselines(task, splits["train"], [plain(text) for text in test["text"]], labels, rows)
    if not scored.all():
        with open(run_dir / "predictions.jsonl", "w", encoding="utf-8") as file:
            for row in np.flatnonzero(~scored):
                label, probabilities = predictions[row]
                answer = {"row": int(row) + 1, "label": label, "probabilities": probabilities}
                file.write(json.dumps(answer, ensure_ascii=False) + "\n")
        log.info("unlabelled  %s test texts, labelled in %s", f"{(~scored).sum():,}", run_dir / "predictions.jsonl")
    metrics["seconds/total"] = time.perf_counter() - started
    write_whole(run_dir / "metrics.json", (json.dumps(metrics, indent=2) + "\n").encode())
    log.info("files       %s/  after %.0f s", run_dir, metrics["seconds/total"])
    log.info('predict     python predict.py %s "your text"', run_dir / "best.ckpt")


def _score(name: str, task: str, labels: list, predicted: list, rows: np.ndarray, note: str) -> dict[str, float]:
    scores = SCORES[task]([labels[row] for row in rows], [predicted[row] for row in rows])
    log.info("%-11s %s  %s", name, sentence(scores), note)
    return {f"{name}/{key}": value for key, value in scores.items()}


def _baselines(task: str, train: Dataset, texts: list[str], labels: list, rows: np.ndarray) -> dict[str, float]:
    """The linear model and the constant answer, both from at most `MOST_TEXTS` training texts spread over the split."""
    step = max(1, -(-len(train) // MOST_TEXTS))
    chosen = train.select(range(0, len(train), step))
    train_texts, train_labels = [plain(text) for text in chosen["text"]], chosen["label"][:]
    linear = linear_baseline(task, train_texts, train_labels, texts)
    note = "TF-IDF + linear model" + (f" on {len(chosen):,} of the training texts" if step > 1 else "")
    constant = constant_baseline(task, train_labels, len(texts))
    return _score("baseline", task, labels, linear, rows, note) | _score(
        "majority", task, labels, constant, rows, f"always {constant[0]!r}"
    )
