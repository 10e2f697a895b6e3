"""Attention: softmax(Q Kᵀ / √K) V in H heads at once.

B batch, T tokens, D d_model, H heads, K d_head.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from errors import UserError


class MultiHeadAttention(nn.Module):
    """Every token gathers from the tokens it may see (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2)."""

    def __init__(self, *, d_model: int, n_heads: int) -> None:
        super().__init__()
        if d_model % n_heads:
            raise UserError(
                f"d_model={d_model} is not divisible by n_heads={n_heads}: choose d_model as a multiple of n_heads"
            )
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attend within `x (B, T, D)` where `mask (B, 1, 1 or T, T)` is True; return `(B, T, D)`."""
        heads = self.qkv(x).unflatten(-1, (-1, self.d_head)).transpose(1, 2)  # (B, 3H, T, K)
        q, k, v = heads.chunk(3, dim=1)  # (B, H, T, K) each
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (B, H, T, K)
        return self.output(attended.transpose(1, 2).flatten(-2))  # (B, T, D)
