"""What a run says while it trains: one line an epoch."""

from __future__ import annotations

import time

from pytorch_lightning import Callback, LightningModule, Trainer


class EpochLine(Callback):
    """Print loss, validation metrics and seconds once an epoch."""

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.started = time.perf_counter()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        # print, not log: a progress bar that is alive moves aside for what is printed.
        print(
            f"epoch {trainer.current_epoch + 1:2d}/{trainer.max_epochs}"
            f"  loss {metrics['train/loss']:.3f} (val {metrics['val/loss']:.3f})"
            f"  accuracy {100 * metrics['val/accuracy']:.1f} %  macro-F1 {100 * metrics['val/macro_f1']:.1f} %"
            f"  {time.perf_counter() - self.started:.1f} s",
            flush=True,
        )
