"""Lightning's trainer from the configuration: how long, what chooses the best epoch, and no noise."""

from __future__ import annotations

import logging
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import EarlyStopping, LambdaCallback, ModelCheckpoint, RichProgressBar

from accidents import FiniteWatch, StopOnSignal
from checkpointing import KeepLast, WholeFiles
from data.datamodule import TextDataModule
from errors import UserError
from evaluation.progress import EpochLine
from model.device import choose_precision, recurs
from model.lightning_module import LOWER_IS_BETTER, monitors
from resume import LAST

log = logging.getLogger("heed")
UNEVEN = 3  # largest class over smallest from which macro-F1 chooses the epoch


def choose_monitor(config: DictConfig, data: TextDataModule) -> str:
    """What chooses the best epoch: the task's first metric, macro-F1 where classes are uneven.

    Raises `UserError` for a monitor that is not measured.
    """
    measured = monitors(data.task)
    if config.monitor is None:
        if data.task == "mlm":
            return "val/loss"
        counts = data.facts["classes"].values()
        return "val/macro_f1" if counts and max(counts) > UNEVEN * min(counts) else measured[0]
    if config.monitor not in measured:
        raise UserError(f"monitor={config.monitor} is not measured: choose one of {', '.join(measured)}")
    return config.monitor


def make_keep_best(config: DictConfig, data: TextDataModule, run_dir: Path) -> ModelCheckpoint:
    """Keep the best epoch on validation in `best.ckpt`."""
    monitor = choose_monitor(config, data)
    return ModelCheckpoint(
        run_dir,
        filename="best",
        monitor=monitor,
        mode="min" if monitor in LOWER_IS_BETTER else "max",
        save_weights_only=True,
        enable_version_counter=False,
    )


def make_keep_last(config: DictConfig, data: TextDataModule, run_dir: Path, *, started: float) -> KeepLast:
    """Keep the state of training in `last.ckpt`, as long as it is sound, and stop when asked to."""
    return KeepLast(
        run_dir / LAST,
        every=config.save_every,
        data_key=data.key,
        watch=FiniteWatch(),
        stop=StopOnSignal(),
        started=started,
    )


def duration(config: DictConfig, data: TextDataModule) -> dict[str, Any]:
    """How long to train: `trainer.max_steps` or `max_epochs`, else as many epochs as make `steps`, within limits.

    A stream has no epochs: it is validated ten times on the way. Raises `UserError` when it has no `trainer.max_steps`.
    """
    steps = config.trainer.max_steps
    if data.stream is not None:
        if steps == -1:
            raise UserError("data.streaming=true has no epochs: say how long to train with trainer.max_steps=N")
        return {"max_epochs": -1, "val_check_interval": max(1, steps // 10), "check_val_every_n_epoch": None}
    if config.trainer.max_epochs is not None:
        return {"max_epochs": config.trainer.max_epochs}
    if steps != -1:
        return {"max_epochs": -1}
    enough = math.ceil(config.steps / len(data.train_dataloader()))
    return {"max_epochs": min(config.trainer.most_epochs, max(config.trainer.fewest_epochs, enough))}


def make_trainer(
    config: DictConfig,
    data: TextDataModule,
    keep_best: ModelCheckpoint,
    *,
    d_model: int,
    on_start: Callable[[], None],
    keep_last: KeepLast | None = None,
) -> Trainer:
    """Lightning's trainer, quiet: one line an epoch, a progress bar on a terminal only."""
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)  # no advertisements
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")  # batches are ready in memory
    warnings.filterwarnings("ignore", message=".*exists and is not empty.*")  # Hydra made the folder
    warnings.filterwarnings("ignore", message=".*dataloader is not resumable.*")  # its sampler is, see checkpointing.py
    warnings.filterwarnings("ignore", message=".*LeafSpec.*")  # Lightning calls what torch renamed
    on_terminal = sys.stdout.isatty()
    callbacks = [
        keep_best,
        EarlyStopping(choose_monitor(config, data), mode=keep_best.mode, patience=config.patience),
        EpochLine(),
        LambdaCallback(on_train_start=lambda *_: on_start()),
        *([RichProgressBar(leave=False)] if on_terminal else []),
        *([keep_last.watch, keep_last] if keep_last is not None else []),  # after all whose state it keeps
    ]
    return Trainer(
        **settings_of(config, data, d_model=d_model),
        callbacks=callbacks,
        plugins=[WholeFiles()],
        default_root_dir=keep_best.dirpath,
        logger=False,
        enable_progress_bar=on_terminal,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )


def settings_of(config: DictConfig, data: TextDataModule, *, d_model: int) -> dict[str, Any]:
    """The trainer's own arguments; says on what it will train, and in which precision."""
    device = device_of(config.trainer.accelerator)
    precision = choose_precision(config.trainer.precision, device, d_model=d_model)
    data.recur = recurs(device, precision)
    settings = {**config.trainer, **duration(config, data), "precision": precision}
    for name in ("fewest_epochs", "most_epochs"):
        settings.pop(name)  # `duration` has read them
    compiled = ", compiled" if settings.pop("compile") else ""
    log.info("device      %s, %d threads, %s%s", device, torch.get_num_threads(), settings["precision"], compiled)
    return settings


def device_of(accelerator: str) -> str:
    """What Lightning will train on: "cuda", or "cpu" as far as precision is concerned."""
    return "cuda" if accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available() else "cpu"
