"""Would more data help? The same run on growing parts of the training texts, the linear baseline beside it.

R texts.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
from datasets import Dataset
from omegaconf import DictConfig

from data.datamodule import TextDataModule
from encoding import plain
from errors import UserError
from evaluation.baseline import MOST_TEXTS, linear_baseline, stride
from evaluation.metrics import NAMES, SCORES, shown
from evaluation.progress import EpochLine
from model.checkpoint import load_classifier
from training.assembly import make_module
from training.mixing import mix
from training.monitoring import choose_monitor, make_keep_best
from training.trainer import device_of, make_trainer

log = logging.getLogger("heed")
PARTS = (10, 20, 40, 70, 100)  # per cent of the training texts
BEFORE = 2  # the part whose score the last one's is compared with: 40 %
DRAWS = 200  # of the test texts, for what chance does to the difference


def learning_curve(config: DictConfig, data: TextDataModule, run_dir: Path) -> None:
    """Train on each part, validate and test on the same texts; print a table and what it means, draw it, write it.

    Leaves `learning_curve.json` and `learning_curve.svg` in `run_dir` and no checkpoint. Raises `UserError` for
    what has no labelled test texts.
    """
    assert data.splits is not None
    if data.task == "mlm" or data.stream is not None:
        raise UserError("only=learning_curve needs labels and all texts: leave task=mlm and data.streaming=true out")
    test = data.splits["test"]
    test = test.select([row for row, label in enumerate(test["label"]) if label is not None])
    if not len(test):
        raise UserError("only=learning_curve: no test text has a label; leave data.test out and it is cut from train")
    name = choose_monitor(config, data).removeprefix("val/")
    name = name if name in NAMES else {"single_label": "accuracy", "multi_label": "micro_f1"}.get(data.task, "mse")
    truth, rows = test["label"][:], nested(data.encoded["train"].labels, data.task, seed=config.seed)
    log.info("curve       %s on %s test texts", NAMES[name], f"{len(truth):,}")
    ours, linear, points = [], [], []
    for per_cent, part in zip(PARTS, rows, strict=True):
        ours.append(answers(config, data, part, test))
        linear.append(baseline_answers(data, part, test))
        both = [SCORES[data.task](truth, found[-1])[name] for found in (ours, linear)]
        points.append({"per_cent": per_cent, "texts": len(part), name: both[0], f"baseline/{name}": both[1]})
        log.info(
            "%10d %%  %8s texts  %s  baseline %s", per_cent, f"{len(part):,}", *(shown(name, score) for score in both)
        )
    sign = -1 if name == "mse" else 1
    gain = sign * (points[-1][name] - points[BEFORE][name])
    chance = spread(data.task, name, truth, ours[BEFORE], ours[-1], seed=config.seed)
    helps = "is likely to help" if gain > 2 * chance else "is not likely to help much"
    log.info(
        "more data   %s: from %d to 100 %% of the texts %s gained %s; chance moves that by %s",
        *(helps, PARTS[BEFORE], NAMES[name], shown(name, gain), shown(name, chance)),
    )
    found = {
        "metric": name,
        "points": points,
        "gain": gain,
        "chance": chance,
        "more_data_likely_to_help": gain > 2 * chance,
    }
    (run_dir / "learning_curve.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    draw(points, name, run_dir / "learning_curve.svg")
    log.info("files       %s/", run_dir)


def nested(labels: Any, task: str, *, seed: int) -> list[np.ndarray]:
    """The rows of each part, each part within the next; of each class alike many per cent, and at least one text."""
    rng, targets = np.random.default_rng(seed), np.asarray(labels)
    classes = targets if task == "single_label" else np.zeros(len(targets))
    orders = [rng.permutation(np.flatnonzero(classes == label)) for label in np.unique(classes)]
    return [np.sort(np.concatenate([o[: math.ceil(len(o) * p / 100)] for o in orders])) for p in PARTS]


def answers(config: DictConfig, data: TextDataModule, rows: np.ndarray, test: Dataset) -> list[Any]:
    """Train on `rows` alone, and predict the test texts by the best epoch."""
    before, data.train_rows = log.level, rows
    log.setLevel(logging.WARNING)  # the parts' own lines say nothing new
    try:
        with TemporaryDirectory() as folder:
            keep_best, module = make_keep_best(config, data, Path(folder)), make_module(config, data)
            d_model = module.classifier.architecture["d_model"]
            trainer = make_trainer(config, data, keep_best, d_model=d_model, on_start=lambda: None)
            trainer = cast(Any, trainer)
            trainer.callbacks = [c for c in trainer.callbacks if not isinstance(c, EpochLine)]
            trainer.fit(module, data)
            path = Path(keep_best.best_model_path)
            classifier = load_classifier(path, device=device_of(config.trainer.accelerator))
            classifier = mix(config, classifier, data, path)
        return [prediction.label for prediction in classifier.predict(test["text"][:])]
    finally:
        log.setLevel(before)
        data.train_rows = None


def baseline_answers(data: TextDataModule, rows: np.ndarray, test: Dataset) -> list[Any]:
    """What the linear model says, fitted on the same texts, at most `MOST_TEXTS` of them."""
    assert data.splits is not None
    train = data.splits["train"].select(rows[:: stride(len(rows), MOST_TEXTS)])
    texts = [plain(text) for text in train["text"]]
    return linear_baseline(data.task, texts, train["label"][:], [plain(text) for text in test["text"]])


def spread(
    task: str, name: str, truth: Sequence[Any], first: Sequence[Any], second: Sequence[Any], *, seed: int
) -> float:
    """The standard deviation of the two answers' difference in score over draws of the test texts (Efron 1979)."""
    rng, differences = np.random.default_rng(seed), []
    for _ in range(DRAWS):
        drawn = rng.integers(0, len(truth), len(truth))
        some = [truth[i] for i in drawn]
        scores = [SCORES[task](some, [said[i] for i in drawn])[name] for said in (first, second)]
        differences.append(scores[1] - scores[0])
    return float(np.std(differences))


def draw(points: list[dict[str, Any]], name: str, path: Path) -> None:
    """Draw both curves over the number of texts."""
    from matplotlib.figure import Figure  # not above: a run without this needs no matplotlib

    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    texts = [point["texts"] for point in points]
    axis.plot(texts, [point[name] for point in points], marker="o", label="this classifier")
    axis.plot(texts, [point[f"baseline/{name}"] for point in points], marker="o", label="TF-IDF + linear model")
    axis.set(xscale="log", xlabel="training texts", ylabel=NAMES[name])
    axis.set_xticks(texts, [f"{n:,}" for n in texts])
    axis.minorticks_off()
    axis.legend()
    figure.savefig(path)
