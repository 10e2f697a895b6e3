"""R-drop: each batch passes the network twice; dropout differs, the answers shall not (Liang et al. 2021, arXiv:2106.14448).

B batch, C outputs.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from errors import UserError
from model.classifier import Classifier
from model.lightning_module import LightningClassifier

DIVERGENCE = {  # task → how far the logits (B, C) of two passes are apart
    "single_label": lambda a, b: ((a.softmax(-1) - b.softmax(-1)) * (a - b)).sum(dim=-1),  # KL(a|b) + KL(b|a), (B,)
    "multi_label": lambda a, b: (a.sigmoid() - b.sigmoid()) * (a - b),  # the same of each label's yes and no, (B, C)
    "regression": lambda a, b: (a - b).square(),  # (B, 1)
}


class LightningRDrop(LightningClassifier):
    """Train a `Classifier` with the mean loss of two passes and, `weight / 2` times, the mean of the two divergences between
    them (equation 4, halved). A step takes twice the time. Raises `UserError` without dropout."""

    def __init__(self, classifier: Classifier, *, weight: float, **settings: Any) -> None:
        super().__init__(classifier, **settings)
        self.weight = weight
        if not classifier.architecture["dropout"]:
            raise UserError(
                f"r_drop={weight} needs two passes that differ: give model.dropout=0.1, not 0, or leave it out"
            )

    def loss(self, batch: dict[str, Tensor]) -> Tensor:
        once, again = self.logits(batch), self.logits(batch)  # (B, C) each
        losses = self.loss_of(once, batch["labels"]) + self.loss_of(again, batch["labels"])
        return losses / 2 + self.weight / 4 * DIVERGENCE[self.task.name](once, again).mean()
