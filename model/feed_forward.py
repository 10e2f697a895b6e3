"""The block's second half: the same small network at every token.

B batch, T tokens, D d_model, F d_ff.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    """An activation between two linear maps (Vaswani et al. 2017, equation 2; GELU: Hendrycks and Gimpel 2016)."""

    def __init__(
        self, activation: Callable[[Tensor], Tensor] = F.gelu, *, d_model: int, d_ff: int, bias: bool = True
    ) -> None:
        super().__init__()
        self.activation = activation
        self.inner = nn.Linear(d_model, d_ff, bias=bias)
        self.output = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map `x (B, T, D)` to `(B, T, D)`."""
        return self.output(self.activation(self.inner(x)))  # (B, T, F) → (B, T, D)


class GatedFeedForward(nn.Module):
    """One linear map gates another (Shazeer 2020, arXiv:2002.05202, equation 6); half as many weights again."""

    def __init__(
        self, activation: Callable[[Tensor], Tensor] = F.gelu, *, d_model: int, d_ff: int, bias: bool = True
    ) -> None:
        super().__init__()
        self.activation = activation
        self.inner = nn.Linear(d_model, 2 * d_ff, bias=bias)
        self.output = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map `x (B, T, D)` to `(B, T, D)`."""
        gate, value = self.inner(x).chunk(2, dim=-1)  # (B, T, F) each
        return self.output(self.activation(gate) * value)  # (B, T, D)


FEED_FORWARDS = {
    "gelu": partial(FeedForward, F.gelu),
    "relu": partial(FeedForward, F.relu),
    "geglu": partial(GatedFeedForward, F.gelu),
    "swiglu": partial(GatedFeedForward, F.silu),
}
