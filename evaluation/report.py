"""The end of a run: the test split once, the baselines beside it, where the files are, what to do next."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

from datasets import DatasetDict

from evaluation.baseline import linear_baseline, majority_baseline
from evaluation.metrics import score
from model.checkpoint import TextClassifier

log = logging.getLogger("heed")


def write_report(classifier: TextClassifier, splits: DatasetDict, run_dir: Path, *, started: float) -> None:
    """Score `classifier` and the two baselines on the test texts, log the lines, and write `metrics.json`.

    `started` is the run's first moment on `time.perf_counter`, in seconds.
    """
    texts, truth = list(splits["test"]["text"]), list(splits["test"]["label"])
    train_texts, train_labels = list(splits["train"]["text"]), list(splits["train"]["label"])
    ours = score(truth, [prediction.label for prediction in classifier.predict(texts)])
    linear = score(truth, linear_baseline(train_texts, train_labels, texts))
    majority = score(truth, majority_baseline(train_labels, len(texts)))
    seconds = time.perf_counter() - started
    metrics = {
        "test/accuracy": ours.accuracy,
        "test/macro_f1": ours.macro_f1,
        "test/accuracy_low": ours.low,
        "test/accuracy_high": ours.high,
        "baseline/accuracy": linear.accuracy,
        "baseline/macro_f1": linear.macro_f1,
        "majority/accuracy": majority.accuracy,
        "seconds/total": seconds,
    }
    (run_dir / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    log.info("test        %s  on %d texts", ours, len(texts))
    log.info("baseline    %s  TF-IDF + logistic regression", linear)
    log.info("majority    %s  always %r", majority, majority_baseline(train_labels, 1)[0])
    log.info("files       %s/  after %.0f s", run_dir, seconds)
    log.info('predict     python predict.py %s "your text"', run_dir / "best.ckpt")
