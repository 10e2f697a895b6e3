"""The block's second half: the same small network at every token.

B batch, T tokens, D d_model.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    """GELU between two linear maps (Vaswani et al. 2017, equation 2; GELU: Hendrycks and Gimpel 2016, arXiv:1606.08415)."""

    def __init__(self, *, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.output = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Map `x (B, T, D)` to `(B, T, D)`."""
        return self.output(F.gelu(self.inner(x)))  # (B, T, D)
