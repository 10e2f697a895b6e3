"""What may happen to a run while it trains: its numbers run away, or somebody stops it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from pytorch_lightning import Callback, LightningModule, Trainer
from torch import Tensor

from errors import Stopped, UserError
from model.distributed import whole

EVERY = 50  # steps between two looks: each waits for the device


class FiniteWatch(Callback):
    """End training at the first step whose loss or gradient is not finite, before anything of it is saved.

    Losses and norms are collected on the device and looked at now and then, before each validation and before each save.
    """

    def __init__(self) -> None:
        self.unseen: list[tuple[int, float, Tensor, Tensor]] = []  # step, rate, loss and norm, both ()
        self.rate = 0.0

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        self.rate = max(group["lr"] for group in trainer.optimizers[0].param_groups)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        loss = outputs["loss"].detach()
        scaled = getattr(trainer.precision_plugin, "scaler", None) is not None  # it skips steps that overflow
        norm = torch.zeros_like(loss) if scaled else cast(Any, pl_module).gradient_norm
        self.unseen.append((trainer.global_step, self.rate, loss, norm))
        if len(self.unseen) >= EVERY:
            self.look(trainer)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.look(trainer)

    def look(self, trainer: Trainer) -> None:
        """Raise `UserError` where a number since the last look, or a weight now, is not finite."""
        if not self.unseen:
            return
        steps, rates, losses, norms = zip(*self.unseen, strict=True)
        self.unseen = []
        values = torch.stack([torch.stack(losses).float(), torch.stack(norms).float()]).cpu()  # (2, steps)
        wrong = (~values.isfinite().all(dim=0)).nonzero().flatten().tolist()
        weights = [whole(parameter.isfinite().all()) for parameter in trainer.lightning_module.parameters()]
        if not wrong and bool(torch.stack(weights).all()):
            return
        i = wrong[0] if wrong else -1
        what = f"loss {values[0, i]:g} with a gradient of norm {values[1, i]:g}" if wrong else "weights without bound"
        raise UserError(
            f"step {steps[i]}: {what} at learning rate {rates[i]:g}; nothing of it was saved, best.ckpt and last.ckpt "
            "are older where they exist; train anew with a lower optimizer.lr or a longer optimizer.warmup"
        )


class StopOnSignal:
    """Remember that Ctrl-C or SIGTERM came, so that the step can be finished; the second one ends the process at once."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.asked: int | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Catch the signals inside; afterwards they do what they did before."""
        before = {number: signal.getsignal(number) for number in self.SIGNALS}
        self.listen()
        try:
            yield
        finally:
            if threading.current_thread() is threading.main_thread():
                for number, handler in before.items():
                    signal.signal(number, handler)

    def listen(self) -> None:
        """Catch the signals, where this thread may."""
        if threading.current_thread() is threading.main_thread():
            for number in self.SIGNALS:
                signal.signal(number, self._note)

    def _note(self, number: int, frame: Any) -> None:
        self.asked = number
        for each in self.SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        # not print: it must not be called while it is at work
        os.write(2, b"stopping after this step, or the validation that follows on it; once more stops at once\n")

    def raise_if_asked(self) -> None:
        """Raise `Stopped` when a signal came."""
        if self.asked is not None:
            raise Stopped(128 + self.asked)
