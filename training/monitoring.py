"""Which epoch is the best, and keeping it."""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig
from pytorch_lightning.callbacks import ModelCheckpoint

from data.datamodule import TextDataModule
from errors import UserError
from model.lightning_module import LOWER_IS_BETTER, monitors

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
