"""One run, step by step: data → network → Lightning module → trainer → test → report."""

from __future__ import annotations

import json
import logging
import math
import time
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.callbacks import ModelCheckpoint

from assembly import make_data, make_module
from data.datamodule import TextDataModule
from errors import UserError, is_first_process
from evaluation.progress import EpochLine
from evaluation.report import write_report
from find_lr import find_lr
from learning_curve import learning_curve
from model.checkpoint import load_classifier
from processes import first_process_first, n_processes, several_processes, shard_if_asked, share_cores
from trainer import device_of, make_keep_best, make_trainer

log = logging.getLogger("heed")
ONLY = {  # what can be asked for instead of a run; the data are checked before each
    "check": lambda config, data, run_dir: log.info("check       %s", run_dir / "check.json"),
    "find_lr": find_lr,
    "learning_curve": learning_curve,
}


def train(config: DictConfig, run_dir: Path, *, started: float) -> float:
    """Train; leave `best.ckpt`, `config.yaml`, `metrics.json` and `report/` in `run_dir`; print the last lines.

    With `only=check` the data are checked and nothing is trained. `started` is the run's first moment on
    `time.perf_counter`, in seconds. Returns the best value of the monitor, its negative where less is better, so that
    sweepers maximise. Raises `UserError`, before anything is written, for what cannot work.
    """
    if (run_dir / "best.ckpt").exists():
        raise UserError(f"{run_dir} already holds a run: choose another folder with hydra.run.dir=FOLDER")
    check_only(config)
    share_cores(config)
    with first_process_first():
        data = make_data(config)
    if config.only is not None:
        ONLY[config.only](config, data, run_dir)
        write_settings(config, data, run_dir)
        return math.nan
    module = make_module(config, data)
    keep_best = make_keep_best(config, data, run_dir)
    d_model = module.classifier.architecture["d_model"]
    trainer = make_trainer(
        config, data, keep_best, d_model=d_model, on_start=lambda: write_settings(config, data, run_dir)
    )
    if config.trainer.compile:
        module.classifier.compile(dynamic=True)  # in place: the weights keep their names
    shard_if_asked(trainer, module)
    with several_processes():
        trainer.fit(module, data)
    if not is_first_process():
        return math.nan
    if not keep_best.best_model_path:  # trainer.fast_dev_run=true
        log.info("nothing to test: the trainer kept no checkpoint")
        return math.nan
    if data.task == "mlm":
        write_pretraining(keep_best, run_dir, started=started)
        return -float(keep_best.best_model_score or math.nan)
    classifier = load_classifier(
        keep_best.best_model_path, device=device_of(config.trainer.accelerator)
    )  # what is tested is the file that is left
    assert data.splits is not None
    assert keep_best.best_model_score is not None
    history = next(callback.history for callback in cast(Any, trainer).callbacks if isinstance(callback, EpochLine))
    write_report(
        classifier, data.splits, data.facts, run_dir, started=started, history=history, monitor=str(keep_best.monitor)
    )
    best = float(keep_best.best_model_score)
    return best if keep_best.mode == "max" else -best


def check_only(config: DictConfig) -> None:
    """Raise `UserError` for an `only` that is unknown, or that several processes cannot do."""
    if config.only not in (None, *ONLY):
        raise UserError(f"only={config.only} is unknown: choose null, {', '.join(ONLY)}")
    if config.only not in (None, "check") and n_processes(config) > 1:
        raise UserError(f"only={config.only} takes one process: leave trainer=ddp and trainer.devices out")


def write_pretraining(keep_best: ModelCheckpoint, run_dir: Path, *, started: float) -> None:
    """The last lines of a run with `task=mlm`, and its `metrics.json`."""
    loss, seconds = float(keep_best.best_model_score or math.nan), time.perf_counter() - started
    metrics = {"val/loss": loss, "seconds/total": seconds}
    (run_dir / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    log.info("guessed     perplexity %.1f on the hidden tokens of validation", math.exp(loss))
    log.info("files       %s/  after %.0f s", run_dir, seconds)
    log.info("next        the same command without task=mlm, and with model.init_from=%s", keep_best.best_model_path)


def write_settings(config: DictConfig, data: TextDataModule, run_dir: Path) -> None:
    """Keep what was asked and what was found in the data: once training starts, so that a mistake leaves nothing."""
    if not is_first_process():
        return
    OmegaConf.save(config, run_dir / "config.yaml", resolve=True)
    (run_dir / "check.json").write_text(json.dumps(data.facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
