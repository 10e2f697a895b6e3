"""The thin layer between the network and Lightning's trainer: loss, metrics, optimizer, and what the checkpoint adds.

B batch, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from pytorch_lightning import LightningModule
from pytorch_lightning.trainer.states import TrainerFn
from pytorch_lightning.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.nn import Module
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torchmetrics import MeanMetric, MeanSquaredError, Metric, MetricCollection, PearsonCorrCoef, SpearmanCorrCoef
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score, MultilabelF1Score

from model.classifier import Classifier, mean_over_pieces
from model.distributed import gathered, whole
from model.task import SingleLabel

METRICS: dict[str, Callable[[int], dict[str, Metric | MetricCollection]]] = {  # task → its metrics for so many labels
    "single_label": lambda n: {
        "accuracy": MulticlassAccuracy(n, average="micro"),
        "macro_f1": MulticlassF1Score(n, average="macro"),
        "balanced_accuracy": MulticlassAccuracy(n, average="macro"),
    },
    "multi_label": lambda n: {
        "micro_f1": MultilabelF1Score(n, average="micro"),
        "macro_f1": MultilabelF1Score(n, average="macro"),
    },
    "mlm": lambda n: {"accuracy": MulticlassAccuracy(n, average="micro")},
    "regression": lambda n: {"mse": MeanSquaredError(), "pearson": PearsonCorrCoef(), "spearman": SpearmanCorrCoef()},
}
LOWER_IS_BETTER = ("val/loss", "val/mse")


def monitors(task: str) -> list[str]:
    """The names that a run of this task logs on validation, the one that usually chooses the epoch first."""
    return [*(f"val/{name}" for name in METRICS[task](2)), "val/loss"]


class LightningClassifier(LightningModule):
    """Train a `Classifier` with its task's loss, the mean over the texts of a batch.

    `make_optimizer(network, total_steps)` returns optimizer and schedule, the latter stepped with the former.
    `checkpoint` is stored beside the weights, so that the file predicts by itself (see `model/checkpoint.py`);
    `class_weight (C,)` is what each class counts in the loss, None for alike.
    """

    class_weight: Tensor | None

    def __init__(
        self,
        classifier: Classifier,
        *,
        task: SingleLabel,
        make_optimizer: Callable[[Module, int], tuple[Optimizer, LRScheduler]],
        label_smoothing: float,
        checkpoint: dict[str, Any],
        class_weight: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.classifier, self.task = classifier, task
        self.register_buffer("class_weight", class_weight, persistent=False)
        self.make_optimizer, self.label_smoothing, self.checkpoint = make_optimizer, label_smoothing, checkpoint
        self.train_loss, self.val_loss = (MeanMetric(nan_strategy="disable") for _ in range(2))  # looking stalls a GPU
        self.val_metrics = MetricCollection(METRICS[task.name](len(task.labels)), prefix="val/")
        self.gradient_norm = torch.tensor(0.0)  # of the latest optimizer step, before clipping
        self.validated: list[tuple[Tensor, Tensor]] = []  # logits and targets of the latest validation
        self.averaged: Callable[[], dict[str, Tensor]] | None = None  # weights to keep instead, where they are averaged

    def logits(self, batch: dict[str, Tensor]) -> Tensor:
        """The batch's logits `(B, C)`, in full precision."""
        pieces = self.classifier(batch["ids"], batch["mask"]).float()  # (P, C)
        return mean_over_pieces(pieces, batch["text"], len(batch["labels"]))  # (B, C)

    def loss(self, batch: dict[str, Tensor]) -> Tensor:
        """What training makes small: the task's loss, the mean over the batch."""
        return self.loss_of(self.logits(batch), batch["labels"])

    def loss_of(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.task.loss(logits, labels, weight=self.class_weight, label_smoothing=self.label_smoothing)

    def training_step(self, batch: dict[str, Tensor], _: int) -> Tensor:
        loss = self.loss(batch)
        share = batch.get("share")  # of the mean over all texts of a step, where it takes more than this batch
        losses = loss.detach().expand(len(batch["labels"]))  # once a text
        if share is None:
            self.train_loss.update(losses)
            return loss
        self.train_loss.update(losses, (share > 0).to(losses.dtype))
        return loss * share

    def on_validation_epoch_start(self) -> None:
        self.validated = []

    def validation_step(self, batch: dict[str, Tensor], _: int) -> None:
        logits = self.logits(batch)
        if self.task.calibrates:
            self.validated.append((logits, batch["labels"]))
        self.val_loss.update(self.task.loss(logits, batch["labels"]).expand(len(logits)))
        self.val_metrics.update(self.task.outputs(logits), batch["labels"])

    def on_validation_epoch_end(self) -> None:
        """Log what has been measured since the last validation; no step stops for it."""
        if self.trainer.state.fn == TrainerFn.FITTING:  # there was training before
            self.log("train/loss", self.train_loss)
        self.log("val/loss", self.val_loss)
        self.log_dict(self.val_metrics)

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        optimizer, schedule = self.make_optimizer(self.classifier, int(self.trainer.estimated_stepping_batches))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        # Lightning's own refuses a fused optimizer in mixed precision; the norm is wanted also where nothing is clipped
        self.gradient_norm = whole(clip_grad_norm_(self.parameters(), gradient_clip_val or math.inf))
        every = getattr(self.trainer, "log_every_n_steps", 0)
        if every and (self.trainer.global_step + 1) % every == 0:
            rate = max(group["lr"] for group in optimizer.param_groups)
            self.log_dict({"train/grad_norm": self.gradient_norm, "train/lr": rate})  # only now is the norm waited for

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Say what predicts by itself; keep averaged weights in a file of weights alone, of which callbacks never hear."""
        if self.averaged is not None and "callbacks" not in checkpoint:
            checkpoint["state_dict"] = self.averaged()
        task = self.task
        if self.validated:
            validated = [torch.cat(parts).cpu() for parts in zip(*self.validated, strict=True)]
            task = task.calibrated(*gathered(validated))
        checkpoint["heed"] = {**self.checkpoint, "task": task.facts()}
