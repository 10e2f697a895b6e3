"""From one vector a token to one vector a text; padding never takes part.

B batch, T tokens, D d_model.
"""

from __future__ import annotations

from torch import Tensor, nn


class MeanPooling(nn.Module):
    """The mean of the real tokens' vectors."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        weights = mask.to(x.dtype).unsqueeze(-1)  # (B, T, 1)
        return (x * weights).sum(dim=1) / weights.sum(dim=1)  # (B, D)


class ClsPooling(nn.Module):
    """The vector of `[CLS]`, the first token (Devlin et al. 2019, arXiv:1810.04805)."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x[:, 0]  # (B, D)


POOLINGS = {"mean": MeanPooling, "cls": ClsPooling}
