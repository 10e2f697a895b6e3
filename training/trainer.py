"""Lightning's trainer from the configuration: how long, what it calls on the way, and no noise."""

from __future__ import annotations

import logging
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from omegaconf import DictConfig
from pytorch_lightning import Callback, Trainer
from pytorch_lightning.callbacks import EarlyStopping, LambdaCallback, ModelCheckpoint, RichProgressBar

from data.datamodule import TextDataModule
from errors import UserError
from evaluation.progress import EpochLine
from model.device import choose_precision, recurs
from training.averaging import AveragedWeights
from training.checkpointing import KeepLast, WholeFiles
from training.loggers import make_loggers
from training.processes import OwnNoise, n_processes

log = logging.getLogger("heed")


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
    batches = config.steps * config.trainer.accumulate_grad_batches
    enough = math.ceil(batches / len(data.train_dataloader()))
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
    quiet()
    on_terminal = sys.stdout.isatty()
    callbacks = [
        keep_best,
        *chosen_callbacks(config, keep_best),
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
        logger=make_loggers(config, Path(keep_best.dirpath or "."), rows=keep_last.rows if keep_last else 0),
        enable_progress_bar=on_terminal,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )


def quiet() -> None:
    """Let Lightning speak of errors alone."""
    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)  # no advertisements
    warnings.filterwarnings("ignore", message=".*smaller than the logging interval.*")  # epochs may be short
    warnings.filterwarnings("ignore", message=".*`broadcast_buffers` is deprecated.*")  # older torch knows no other
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")  # batches are ready in memory
    warnings.filterwarnings("ignore", message=".*exists and is not empty.*")  # Hydra made the folder
    warnings.filterwarnings("ignore", message=".*dataloader is not resumable.*")  # its sampler is, see checkpointing.py
    warnings.filterwarnings("ignore", message=".*LeafSpec.*")  # Lightning calls what torch renamed


def chosen_callbacks(config: DictConfig, keep_best: ModelCheckpoint) -> list[Callback]:
    """What `patience`, `ema` and several processes ask for."""
    callbacks: list[Callback] = []
    if config.patience is not None:
        callbacks.append(EarlyStopping(str(keep_best.monitor), mode=keep_best.mode, patience=config.patience))
    if config.ema is not None:
        if "ModelParallel" in str(config.trainer.strategy):
            raise UserError(f"ema={config.ema} averages whole weights, and trainer=fsdp has parts: take trainer=ddp")
        callbacks.append(AveragedWeights(config.ema))
    if n_processes(config) > 1:
        callbacks.append(OwnNoise())
    return callbacks


def settings_of(config: DictConfig, data: TextDataModule, *, d_model: int) -> dict[str, Any]:
    """The trainer's own arguments; says on what it will train, and in which precision."""
    device = device_of(config.trainer.accelerator)
    precision = choose_precision(config.trainer.precision, device, d_model=d_model)
    data.recur = recurs(device, precision)
    data.world, data.window = n_processes(config), config.trainer.accumulate_grad_batches
    if len(data.encoded["validation"]) < data.world:
        raise UserError(f"validation has fewer texts than there are processes ({data.world}): give more texts")
    settings = {**config.trainer, **duration(config, data), "precision": precision, "use_distributed_sampler": False}
    settings["strategy"] = instantiate(config.trainer.strategy) or "auto"
    for name in ("fewest_epochs", "most_epochs"):
        settings.pop(name)  # `duration` has read them
    compiled = ", compiled" if settings.pop("compile") else ""
    several = f", {data.world} processes" if data.world > 1 else ""
    log.info("device      %s, %d threads, %s%s%s", device, torch.get_num_threads(), precision, compiled, several)
    return settings


def device_of(accelerator: str) -> str:
    """What Lightning will train on: "cuda", or "cpu" as far as precision is concerned."""
    return "cuda" if accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available() else "cpu"
