"""Which learning rate? A short run in which it rises from far too small to far too large (Smith 2017, arXiv:1506.01186).

S steps.
"""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig
from pytorch_lightning import Callback, LightningModule, Trainer
from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from data.datamodule import TextDataModule
from errors import UserError
from training.assembly import make_module
from training.trainer import quiet, settings_of

log = logging.getLogger("heed")
LOWEST, HIGHEST, STEPS = 1e-6, 1.0, 100
SMOOTH = 0.9  # of the loss so far that its running mean keeps
DIVERGED = 2.0  # times the smallest running mean: here the run ends
FEWEST = 10  # steps without which nothing can be said


class RangeTest(Callback):
    """Note learning rate and loss of each step; stop once the loss has left its smallest value far behind."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.losses: list[float] = []

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, outputs: Any, *_: Any) -> None:
        self.rates.append(LOWEST * (HIGHEST / LOWEST) ** (len(self.rates) / STEPS))
        self.losses.append(float(outputs["loss"]))
        mean = smoothed(self.losses)
        trainer.should_stop = not math.isfinite(mean[-1]) or mean[-1] > DIVERGED * mean[FEWEST // 2 :].min(
            initial=mean[0]
        )


def find_lr(config: DictConfig, data: TextDataModule, run_dir: Path) -> None:
    """Train for at most `STEPS` steps while the rate rises; print the override, write `find_lr.json` and `find_lr.svg`.

    Raises `UserError` where too few steps came before the loss rose.
    """
    module = make_module(config, data)
    make_optimizer = module.make_optimizer

    def rising(network: Module, total_steps: int) -> tuple[Optimizer, LRScheduler]:
        optimizer, _ = make_optimizer(network, total_steps)
        for group in optimizer.param_groups:  # each keeps its ratio to optimizer.lr
            group["lr"] = group["initial_lr"] = group["initial_lr"] / config.optimizer.lr * LOWEST
        return optimizer, LambdaLR(optimizer, lambda step: (HIGHEST / LOWEST) ** (step / STEPS))

    module.make_optimizer = rising
    test = RangeTest()
    settings = settings_of(config, data, d_model=module.classifier.architecture["d_model"])
    settings |= {"max_epochs": -1, "max_steps": STEPS, "limit_val_batches": 0, "accumulate_grad_batches": 1}
    quiet()
    Trainer(
        **settings,
        callbacks=[test],
        default_root_dir=run_dir,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    ).fit(module, data)
    best = suggested(test.rates, test.losses)
    found = {"suggested": best, "lr": test.rates, "loss": test.losses}
    (run_dir / "find_lr.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    draw(test.rates, test.losses, best, run_dir / "find_lr.svg")
    log.info("curve       %s", run_dir / "find_lr.svg")
    log.info("suggested   optimizer.lr=%.2g", best)


def smoothed(losses: list[float]) -> np.ndarray:
    """The running mean `(S,)` of `losses (S,)`, without a bias towards the first."""
    mean = np.zeros(len(losses))
    for step, loss in enumerate(losses):
        mean[step] = SMOOTH * (mean[step - 1] if step else 0.0) + (1 - SMOOTH) * loss
    return mean / (1 - SMOOTH ** np.arange(1, len(losses) + 1))


def suggested(rates: list[float], losses: list[float]) -> float:
    """The rate at which the smoothed loss falls most steeply over log(rate), before it is smallest."""
    mean = smoothed(losses)
    end = int(np.nanargmin(mean)) + 1 if np.isfinite(mean).any() else 0
    if end < FEWEST:
        raise UserError(
            "only=find_lr: the loss never fell; check the labels, or look at find_lr with a larger batch_tokens"
        )
    return rates[int(np.argmin(np.gradient(mean[:end], np.log(rates[:end]))))]


def draw(rates: list[float], losses: list[float], best: float, path: Path) -> None:
    """Draw the loss over the rate, and where the suggestion lies."""
    from matplotlib.figure import Figure  # not above: a run without this needs no matplotlib

    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    axis.plot(rates, losses, color="0.8", label="loss of a step")
    axis.plot(rates, smoothed(losses), label="running mean")
    axis.axvline(best, color="C1", label=f"optimizer.lr={best:.2g}")
    axis.set(xscale="log", xlabel="learning rate", ylabel="training loss")
    axis.legend()
    figure.savefig(path)
