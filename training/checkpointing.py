"""`last.ckpt`: all that a killed run needs to go on, bit for bit, as if it had never stopped."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any, cast

import torch
from lightning_fabric.plugins import TorchCheckpointIO
from omegaconf import DictConfig
from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import Checkpoint

from files import write_whole
from training.accidents import FiniteWatch, StopOnSignal
from training.loggers import MetricsFile
from training.randomness import random_state, set_random_state
from training.resume import LAST

KEY = "heed_training"  # where a checkpoint holds what Lightning's own lacks


class WholeFiles(TorchCheckpointIO):
    """Lightning's way to the disk, where a file is never half written."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        write_whole(Path(path), buffer.getbuffer())


class KeepLast(Checkpoint):
    """Write the whole state of training to `path` when it starts, every so many steps, and at the end of epochs.

    Only between two optimizer steps and never right before a validation: there Lightning knows how to go on. What it does
    not keep is kept here: how much of the epoch has been read, the running loss, what was measured, the generators of random
    numbers, whether to stop early. When `stop` was asked to, it saves and ends training. `data_key` changes whenever the
    data do; `started` is the run's first moment on `time.perf_counter`, `every` is None for the ends of epochs alone.
    """

    def __init__(
        self, path: Path, *, every: int | None, data_key: str, watch: FiniteWatch, stop: StopOnSignal, started: float
    ) -> None:
        self.path, self.every, self.data_key, self.watch, self.stop = path, every, data_key, watch, stop
        self.started = started
        self.resumed: dict[str, Any] | None = None
        self.read = self.saved = self.seen = 0  # batches of the epoch, step of the latest save, latest step
        self.rows = 0  # of metrics.csv, when the run stopped

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.world_size == 1:  # several processes would stop at different steps
            self.stop.listen()  # again: Lightning has taken SIGTERM
        self.saved = self.seen = trainer.global_step
        if self.resumed is None:
            self._save(trainer, read=0)
        else:
            self._restore(self.resumed, trainer, pl_module)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        stepped, self.seen = trainer.global_step > self.seen, trainer.global_step
        if not stepped or validates_next(trainer, batch_idx):
            return
        if self.stop.asked or (self.every is not None and self.seen - self.saved >= self.every):
            self._save(trainer, read=batch_idx + 1)
        self.stop.raise_if_asked()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._save(trainer, read=0)
        self.stop.raise_if_asked()

    def _save(self, trainer: Trainer, *, read: int) -> None:
        if not resumable(trainer):
            return
        self.watch.look(trainer)
        self.read, self.saved = read, trainer.global_step
        trainer.save_checkpoint(self.path)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint[KEY] = {
            "step": trainer.global_step,
            "read": self.read,
            "data_key": self.data_key,
            "metrics": dict(trainer.callback_metrics),
            "train_loss": cast(Any, pl_module).train_loss.metric_state,
            "random": random_state(),
            "should_stop": trainer.should_stop,
            "seconds": time.perf_counter() - self.started,
            "rows": sum(logger.n_rows for logger in trainer.loggers if isinstance(logger, MetricsFile)),
        }
        for progress in (checkpoint["loops"]["fit_loop"]["epoch_progress"][name] for name in ("total", "current")):
            progress["completed"] = progress["processed"]  # Lightning counts an epoch a moment after it has ended

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        self.resumed = checkpoint[KEY]
        trainer.should_stop = self.resumed["should_stop"]
        for state in checkpoint["callbacks"].values():
            if "best_model_path" in state:  # the folder may have moved
                move(state, str(self.path.parent.resolve()))

    def _restore(self, state: dict[str, Any], trainer: Trainer, pl_module: LightningModule) -> None:
        train_loss = {name: value.to(pl_module.device) for name, value in state["train_loss"].items()}
        cast(Any, pl_module).train_loss.merge_state(train_loss)
        trainer.callback_metrics.update(state["metrics"])
        loader: Any = trainer.train_dataloader
        loader.sampler.skip = state["read"]
        if not state["read"]:
            trainer.fit_loop.epoch_loop.restarting = False  # with trainer.max_steps Lightning would end the epoch twice
        set_random_state(state["random"])
        if not state["read"] and trainer.current_epoch > 0:
            iter(loader)  # a number is drawn for each epoch's; Lightning leaves out this one


def make_keep_last(config: DictConfig, data_key: str, run_dir: Path, *, started: float) -> KeepLast:
    """Keep the state of training in `last.ckpt`, as long as it is sound, and stop when asked to."""
    return KeepLast(
        run_dir / LAST,
        every=config.save_every,
        data_key=data_key,
        watch=FiniteWatch(),
        stop=StopOnSignal(),
        started=started,
    )


def resumable(trainer: Trainer) -> bool:
    """Whether a run like this can go on exactly: on one device, and from data that are all here."""
    tried = cast(Any, trainer).fast_dev_run
    return not tried and trainer.world_size == 1 and trainer.num_training_batches != float("inf")


def validates_next(trainer: Trainer, batch_idx: int) -> bool:
    """Whether validation follows on this batch."""
    counted = trainer.fit_loop.total_batch_idx if trainer.check_val_every_n_epoch is None else batch_idx
    return trainer.is_last_batch or (counted + 1) % (trainer.val_check_batch or float("inf")) == 0


def move(state: dict[str, Any], folder: str) -> None:
    """Let the state of Lightning's `ModelCheckpoint` speak of another folder."""
    old = state["dirpath"]
    state["best_k_models"] = {path.replace(old, folder, 1): score for path, score in state["best_k_models"].items()}
    for name in ("dirpath", "best_model_path", "kth_best_model_path", "last_model_path"):
        state[name] = state[name].replace(old, folder, 1)
