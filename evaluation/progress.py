"""What a run says while it trains: one line an epoch."""

from __future__ import annotations

import math
import time
from typing import Any

from pytorch_lightning import Callback, LightningModule, Trainer

from evaluation.metrics import sentence


class EpochLine(Callback):
    """Print loss, validation metrics and seconds once an epoch, or for a stream once a validation; keep them in `history`."""

    def __init__(self) -> None:
        self.history: list[dict[str, float]] = []

    def state_dict(self) -> dict[str, Any]:
        return {"history": self.history}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.history = state_dict["history"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.started = time.perf_counter()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.check_val_every_n_epoch is None:
            self._print(trainer, f"step {trainer.global_step}/{trainer.max_steps}")

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.check_val_every_n_epoch is not None:
            last = "" if trainer.max_epochs == -1 else f"/{trainer.max_epochs}"
            self._print(trainer, f"epoch {trainer.current_epoch + 1:2d}{last}")

    def _print(self, trainer: Trainer, head: str) -> None:
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        shown = {name.removeprefix("val/"): value for name, value in metrics.items() if name.startswith("val/")}
        shown.pop("balanced_accuracy", None)  # the line has 80 columns
        loss = f"loss {metrics['train/loss']:.3f} " if "train/loss" in metrics else ""
        now = time.perf_counter()
        # print, not log: a progress bar that is alive moves aside for what is printed.
        print(
            f"{head}  {loss}(val {shown.pop('loss'):.3f})  {sentence(shown)}  {now - self.started:.1f} s",
            flush=True,
        )
        when = {"epoch": trainer.current_epoch + 1, "step": trainer.global_step, "seconds": now - self.started}
        self.history.append(when | {name: value for name, value in metrics.items() if math.isfinite(value)})
        self.started = now
