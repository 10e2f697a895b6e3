"""From one vector a token to one vector a text; padding never takes part.

B batch, T tokens, D d_model.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MeanPooling(nn.Module):
    """The mean of the real tokens' vectors."""

    def __init__(self, *, d_model: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map `x (B, T, D)` and `mask (B, T)`, True = real token, to `(B, D)`."""
        weights = mask.to(x.dtype).unsqueeze(-1)  # (B, T, 1)
        return (x * weights).sum(dim=1) / weights.sum(dim=1)  # (B, D)


class MaxPooling(nn.Module):
    """The largest value of each coordinate over the real tokens (Collobert et al. 2011, arXiv:1103.0398)."""

    def __init__(self, *, d_model: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """As `MeanPooling.forward`."""
        return x.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(dim=1)  # (B, D)


class ClsPooling(nn.Module):
    """The vector of `[CLS]`, the first token (Devlin et al. 2019, arXiv:1810.04805)."""

    def __init__(self, *, d_model: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """As `MeanPooling.forward`."""
        return x[:, 0]  # (B, D)


class AttentionPooling(nn.Module):
    """A mean weighted by how each token's vector fits one learned query (Yang et al. 2016, doi:10.18653/v1/N16-1174)."""

    def __init__(self, *, d_model: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, 1, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """As `MeanPooling.forward`."""
        scores = self.query(x).float().squeeze(-1).masked_fill(~mask, -torch.inf)  # (B, T)
        return (scores.softmax(dim=-1).unsqueeze(-1).to(x.dtype) * x).sum(dim=1)  # (B, D)


POOLINGS = {"mean": MeanPooling, "max": MaxPooling, "cls": ClsPooling, "attention": AttentionPooling}
