"""Which tokens a token may see: padding never, and by choice only earlier or only near ones.

B batch, T tokens. Every token sees itself, so that no row of scores is empty.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from errors import UserError


class PaddingMask(nn.Module):
    """Every real token sees every real token."""

    def __init__(self, *, window: int | None = None) -> None:
        super().__init__()

    def forward(self, mask: Tensor) -> Tensor:
        """Turn `mask (B, T)`, True = real token, into what each query may see, `(B, 1, 1, T)`."""
        return mask[:, None, None, :]  # (B, 1, 1, T), the same for every head and query


class CausalMask(nn.Module):
    """A token sees itself and what stands before it (Vaswani et al. 2017, section 3.2.3)."""

    def __init__(self, *, window: int | None = None) -> None:
        super().__init__()

    def forward(self, mask: Tensor) -> Tensor:
        """As `PaddingMask.forward`, `(B, 1, T, T)`."""
        return combine(distances(mask) <= 0, mask)


class WindowMask(nn.Module):
    """A token sees `window` tokens to either side (Beltagy et al. 2020, arXiv:2004.05150, figure 2b)."""

    def __init__(self, *, window: int | None = None) -> None:
        super().__init__()
        if window is None or window < 1:
            raise UserError(
                f"model.window={window} lets a token see no other: give how many to either side, at least 1"
            )
        self.window = window

    def forward(self, mask: Tensor) -> Tensor:
        """As `PaddingMask.forward`, `(B, 1, T, T)`."""
        return combine(distances(mask).abs() <= self.window, mask)


def distances(mask: Tensor) -> Tensor:
    """Return key minus query place, `(T, T)`, for `mask (B, T)`."""
    place = torch.arange(mask.shape[-1], device=mask.device)  # (T,)
    return place - place[:, None]  # (T, T)


def combine(pattern: Tensor, mask: Tensor) -> Tensor:
    """Join what a pattern `(T, T)` allows with `mask (B, T)`: `(B, 1, T, T)`."""
    itself = torch.eye(mask.shape[-1], dtype=torch.bool, device=mask.device)  # (T, T)
    return (pattern & mask[:, None, None, :]) | itself  # (B, 1, T, T)


MASKS = {"padding": PaddingMask, "causal": CausalMask, "window": WindowMask}
