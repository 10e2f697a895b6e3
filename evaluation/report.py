"""The end of a run: the test split once, the baselines beside it, where the files are, what to do next."""

from __future__ import annotations

import json
import logging
import platform
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict

from encoding import plain
from evaluation.answers import Answers, answers_of
from evaluation.baseline import MOST_TEXTS, constant_baseline, linear_baseline, stride
from evaluation.calibration import trust
from evaluation.compare import compare, intervals, resampled
from evaluation.findings import findings
from evaluation.metrics import SCORES, sentence
from files import write_whole
from model.text_classifier import TextClassifier

log = logging.getLogger("heed")
MOST_VALIDATED = 5000  # texts of validation that the report looks at
PACKAGES = ("torch", "pytorch-lightning", "tokenizers", "datasets", "scikit-learn", "numpy")


def write_report(
    classifier: TextClassifier,
    splits: DatasetDict,
    facts: dict[str, Any],
    run_dir: Path,
    *,
    started: float,
    alone: TextClassifier | None = None,
    history: Sequence[dict[str, float]] = (),
    monitor: str = "val/loss",
) -> None:
    """Score `classifier` and the two baselines on the test texts, log the lines, and write `metrics.json`, `report/` and the
    model card `README.md`.

    Test texts without a label go to `predictions.jsonl` with what was predicted; those that are nearly in training are
    also left out of a second score. `alone` is the network without a linear model beside it, None where there is none;
    `started` is the run's first moment on `time.perf_counter`, in seconds; `history` is what each epoch measured
    (`evaluation/progress.py`), `monitor` what chose the best.
    """
    task, test = classifier.task, answers_of(classifier, splits["test"], "test")
    labelled = np.array([label is not None for label in test.truth], bool)
    scored = test.only(labelled)
    found: dict[str, Any] = {"run": str(run_dir), "task": task.name, "monitor": monitor}
    metrics: dict[str, float] = {}
    if len(scored.rows):
        by_network = [] if alone is None else answers_of(alone, splits["test"], "test").only(labelled).predicted
        summary, found["verdict"], differ = scores_of_all(task.name, scored, by_network, splits["train"], facts)
        metrics = {f"{name}/{key}": value for name, of in summary.items() for key, value in of.items()}
        found |= {"summary": summary, "trust": trust(task, scored)}
        metrics |= {**differ, **found["trust"]}
    if not labelled.all():
        write_predictions(classifier, test.only(~labelled), run_dir / "predictions.jsonl")
    metrics["seconds/total"] = time.perf_counter() - started
    write_whole(run_dir / "metrics.json", (json.dumps(metrics, indent=2) + "\n").encode())
    validation = splits["validation"]
    step = stride(len(validation), MOST_VALIDATED)
    try:
        seen = answers_of(classifier, validation.select(range(0, len(validation), step)), "validation", step=step)
        found |= {"history": list(history), **findings(task, scored, seen), **circumstances(run_dir, started)}
        write_page(found, run_dir / "report")
        write_card(classifier, run_dir)
        log.info("report      %s", run_dir / "report" / "index.html")
    except Exception as error:  # a picture is not worth a run
        log.info("report      not written: %s: %s", type(error).__name__, " ".join(str(error).split()))
    log.info("files       %s/  after %.0f s", run_dir, time.perf_counter() - started)
    log.info('predict     python predict.py %s "your text"', run_dir / "best.ckpt")


def scores_of_all(
    task: str, test: Answers, by_network: list[Any], train: Dataset, facts: dict[str, Any]
) -> tuple[dict[str, dict[str, float]], str, dict[str, float]]:
    """Score ours, what is said `by_network` alone, and both baselines from at most `MOST_TEXTS` training texts spread over the
    split; log a line each.

    Returns the scores of each, the comparison in words, and the comparison as `metrics.json` names it.
    """
    scores: dict[str, dict[str, float]] = {}
    resamples: dict[str, dict[str, np.ndarray]] = {}

    def score(name: str, answers: Sequence[Any], note: str, rows: Sequence[int] = range(len(test.rows))) -> None:
        truth, said = [test.truth[row] for row in rows], [answers[row] for row in rows]
        resamples[name] = resampled(task, truth, said)
        scores[name] = SCORES[task](truth, said) | intervals(resamples[name])
        log.info("%-11s %s  %s", name, sentence(scores[name]), note)

    score("test", test.predicted, f"on {len(test.rows):,} texts")
    apart = np.flatnonzero(~np.isin(test.rows, facts["near_duplicates"]["test"]))
    if 0 < len(apart) < len(test.rows):
        score("apart", test.predicted, f"without {len(test.rows) - len(apart):,} that are nearly in train", list(apart))
    if by_network:
        score("alone", by_network, "the network without the linear model beside it")
    step = stride(len(train), MOST_TEXTS)
    chosen = train.select(range(0, len(train), step))
    train_texts, train_labels = [plain(text) for text in chosen["text"]], chosen["label"][:]
    linear = linear_baseline(task, train_texts, train_labels, test.texts)
    constant = constant_baseline(task, train_labels, len(test.rows))
    score("baseline", linear, "TF-IDF + linear model" + f" on {len(chosen):,} of the training texts" * (step > 1))
    score("majority", constant, f"always {constant[0]!r}")
    words, differ = compare(task, test, linear, scores, resamples)
    log.info("compared    %s", words)
    return scores, words, differ


def write_predictions(classifier: TextClassifier, test: Answers, path: Path) -> None:
    """One JSON object a line: the text's row in the split, its label, and the probabilities."""
    with open(path, "w", encoding="utf-8") as file:
        for row, probabilities in zip(test.rows, test.probabilities, strict=True):
            prediction = classifier.task.prediction(probabilities)
            file.write(json.dumps({"row": int(row) + 1, **prediction._asdict()}, ensure_ascii=False) + "\n")
    log.info("unlabelled  %s test texts, labelled in %s", f"{len(test.rows):,}", path)


def circumstances(run_dir: Path, started: float) -> dict[str, Any]:
    """The configuration, versions and time of the run."""
    settings = run_dir / "config.yaml"
    return {
        "configuration": settings.read_text(encoding="utf-8") if settings.exists() else "",
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "seconds": time.perf_counter() - started,
    }


def write_page(found: dict[str, Any], folder: Path) -> None:
    """Write `report.json` and `index.html`."""
    from evaluation.page import page  # matplotlib and the rest only at the end

    folder.mkdir(exist_ok=True)
    (folder / "report.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(page(found), encoding="utf-8")


def write_card(classifier: TextClassifier, run_dir: Path) -> None:
    """Write the model card, `README.md`."""
    from evaluation.card import model_card  # only at the end

    write_whole(run_dir / "README.md", model_card(classifier, run_dir, name=run_dir.name, kind="checkpoint").encode())
