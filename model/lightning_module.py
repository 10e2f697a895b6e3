"""The thin layer between the network and Lightning's trainer: loss, metrics, optimizer, and what the checkpoint adds.

B batch, C classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from pytorch_lightning import LightningModule
from pytorch_lightning.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

from model.classifier import Classifier, mean_over_pieces

MONITORS = {"val/loss": "min", "val/accuracy": "max", "val/macro_f1": "max"}  # what is logged, and which way is better


class LightningClassifier(LightningModule):
    """Train a `Classifier` with cross-entropy, the mean over the texts of a batch.

    `make_optimizer(network, total_steps)` returns optimizer and schedule, the latter stepped with the former.
    `checkpoint` is stored beside the weights, so that the file predicts by itself (see `model/checkpoint.py`).
    """

    def __init__(
        self,
        classifier: Classifier,
        *,
        make_optimizer: Callable[[Module, int], tuple[Optimizer, LRScheduler]],
        label_smoothing: float,
        checkpoint: dict[str, Any],
    ) -> None:
        super().__init__()
        self.classifier = classifier
        self.make_optimizer, self.label_smoothing, self.checkpoint = make_optimizer, label_smoothing, checkpoint
        n_classes = classifier.head.out_features
        self.train_loss, self.val_loss = MeanMetric(), MeanMetric()
        self.val_metrics = MetricCollection(
            {
                "accuracy": MulticlassAccuracy(n_classes, average="micro"),
                "macro_f1": MulticlassF1Score(n_classes, average="macro"),
            },
            prefix="val/",
        )

    def logits(self, batch: dict[str, Tensor]) -> Tensor:
        """The batch's logits `(B, C)`, in full precision."""
        pieces = self.classifier(batch["ids"], batch["mask"]).float()  # (P, C)
        return mean_over_pieces(pieces, batch["text"], len(batch["labels"]))  # (B, C)

    def training_step(self, batch: dict[str, Tensor], _: int) -> Tensor:
        logits = self.logits(batch)
        loss = F.cross_entropy(logits, batch["labels"], label_smoothing=self.label_smoothing)
        self.train_loss.update(loss.detach(), weight=len(logits))
        self.log("train/loss", self.train_loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: dict[str, Tensor], _: int) -> None:
        logits = self.logits(batch)
        self.val_loss.update(F.cross_entropy(logits, batch["labels"]), weight=len(logits))
        self.val_metrics.update(logits, batch["labels"])
        self.log("val/loss", self.val_loss)
        self.log_dict(self.val_metrics)

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        optimizer, schedule = self.make_optimizer(self.classifier, int(self.trainer.estimated_stepping_batches))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["heed"] = self.checkpoint
