"""Averaged weights: what is validated and kept is a moving average of what was trained."""

from __future__ import annotations

import torch
from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import WeightAveraging
from torch.optim.swa_utils import get_ema_multi_avg_fn

from model.lightning_module import LightningClassifier


class AveragedWeights(WeightAveraging):
    """Keep a moving average of the weights, w̄ ← decay · w̄ + (1 - decay) · w after each step; the first is w itself.

    (Polyak and Juditsky 1992, doi:10.1137/0330046, with the weights of Kingma and Ba 2015, arXiv:1412.6980, section 7.2.)
    Lightning swaps it in for validation and puts it into whole checkpoints; here also into those of weights alone.
    """

    def __init__(self, decay: float) -> None:
        super().__init__(use_buffers=False, multi_avg_fn=get_ema_multi_avg_fn(decay))

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        super().setup(trainer, pl_module, stage)
        if stage == "fit" and isinstance(pl_module, LightningClassifier):
            pl_module.averaged = self.weights

    def weights(self) -> dict[str, torch.Tensor]:
        """The averaged weights by the names of the module's own."""
        assert self._average_model is not None
        return self._average_model.module.state_dict()
