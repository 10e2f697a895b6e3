"""The end of a run: the file that is left is tested, or what pretraining came to is said."""

from __future__ import annotations

import json
import logging
import math
import time
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import ModelCheckpoint

from data.datamodule import TextDataModule
from evaluation.progress import EpochLine
from evaluation.report import write_report
from files import write_whole
from model.checkpoint import load_classifier
from training.mixing import mix
from training.resume import MIXED
from training.trainer import device_of

log = logging.getLogger("heed")


def test(
    config: DictConfig,
    data: TextDataModule,
    trainer: Trainer,
    keep_best: ModelCheckpoint,
    run_dir: Path,
    *,
    started: float,
) -> None:
    """Let a linear model join the network where that is asked for; score the file that is left, and write what came of it."""
    path = Path(keep_best.best_model_path)
    alone = load_classifier(path, device=device_of(config.trainer.accelerator))
    classifier = mix(config, alone, data, path)
    assert data.splits is not None
    write_report(
        classifier,
        data.splits,
        data.facts,
        run_dir,
        alone=None if classifier is alone else alone,
        started=started,
        history=next(each.history for each in cast(Any, trainer).callbacks if isinstance(each, EpochLine)),
        monitor=str(keep_best.monitor),
    )
    if classifier is not alone:
        path.with_name(MIXED).replace(path)  # at the end: a run that dies before goes on from what training left


def write_pretraining(keep_best: ModelCheckpoint, run_dir: Path, *, started: float) -> None:
    """The last lines of a run with `task=mlm`, and its `metrics.json`."""
    loss, seconds = float(keep_best.best_model_score or math.nan), time.perf_counter() - started
    metrics = {"val/loss": loss, "seconds/total": seconds}
    write_whole(run_dir / "metrics.json", (json.dumps(metrics, indent=2) + "\n").encode())
    log.info("guessed     perplexity %.1f on the hidden tokens of validation", math.exp(loss))
    log.info("files       %s/  after %.0f s", run_dir, seconds)
    log.info("next        the same command without task=mlm, and with model.init_from=%s", keep_best.best_model_path)
