"""What a run says while it trains: one line an epoch."""

from __future__ import annotations

import logging
import time

from pytorch_lightning import Callback, LightningModule, Trainer

log = logging.getLogger("heed")


class EpochLine(Callback):
    """Log loss, validation metrics and seconds once an epoch."""

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.started = time.perf_counter()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        log.info(
            "epoch %3d/%d  train loss %.3f  validation loss %.3f  accuracy %5.1f %%  macro-F1 %5.1f %%  %.1f s",
            trainer.current_epoch + 1,
            trainer.max_epochs,
            metrics["train/loss"],
            metrics["val/loss"],
            100 * metrics["val/accuracy"],
            100 * metrics["val/macro_f1"],
            time.perf_counter() - self.started,
        )
