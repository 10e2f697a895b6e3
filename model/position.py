"""Where a token stands: what is added to its embedding.

B batch, T tokens, D d_model.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class NoPosition(nn.Module):
    """Leave the embeddings as they are: the encoder then sees a bag of tokens."""

    def __init__(self, *, d_model: int, max_len: int) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class SinusoidalPosition(nn.Module):
    """Add sines and cosines of geometrically growing wavelengths (Vaswani et al. 2017, section 3.5)."""

    table: Tensor  # (max_len, D)

    def __init__(self, *, d_model: int, max_len: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_len, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]  # (B, T, D)


class LearnedPosition(nn.Module):
    """Add one trained vector a position (Gehring et al. 2017, arXiv:1705.03122; used by BERT)."""

    def __init__(self, *, d_model: int, max_len: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(max_len, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.embedding.weight[: x.shape[1]]  # (B, T, D)


def sinusoidal_table(n_positions: int, d_model: int) -> Tensor:
    """Return `(n_positions, D)`: even columns sin(p / 10000^(i/D)), odd columns the cosine of the same angle; any D."""
    position = torch.arange(n_positions, dtype=torch.float32)[:, None]  # (P, 1)
    frequency = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))  # (⌈D/2⌉,)
    angles = position * frequency  # (P, ⌈D/2⌉)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:, :d_model]  # (P, D)


POSITIONS = {"none": NoPosition, "sinusoidal": SinusoidalPosition, "learned": LearnedPosition}
