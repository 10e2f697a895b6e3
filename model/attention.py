"""Attention: every token gathers from the tokens it may see, in several heads at once.

B batch, T tokens, D d_model, H heads, K d_head (queries and keys), V d_value (values).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from errors import UserError

PRODUCTS_UP_TO = 512  # tokens


class ScaledDotProduct(nn.Module):
    """softmax(Q Kᵀ / √K) V (Vaswani et al. 2017, arXiv:1706.03762, equation 1)."""

    turns = True  # a rotation of queries and keys leaves the distance in the score

    def __init__(self, *, d_head: int) -> None:
        super().__init__()
        self.scale = d_head**-0.5

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """Weigh `v (B, H, T, V)` by how `q` and `k (B, H, T, K)` fit; return `(B, H, T, V)`.

        `mask (B, 1 or H, 1 or T, T)` is True where a key may be seen, or a number added to the score. Raises `UserError`
        when the widths of queries and keys differ.
        """
        check_widths(q, k)
        bias = as_bias(mask).to(q.dtype)
        if products_are_faster(q):
            scores = (q * self.scale) @ k.transpose(-1, -2) + bias  # (B, H, T, T)
            return scores.softmax(dim=-1) @ v  # (B, H, T, V)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=self.scale)  # (B, H, T, V)


class DotProduct(ScaledDotProduct):
    """softmax(Q Kᵀ) V, without the scale (Luong et al. 2015, arXiv:1508.04025, "dot")."""

    def __init__(self, *, d_head: int) -> None:
        super().__init__(d_head=d_head)
        self.scale = 1.0


class Additive(nn.Module):
    """softmax(vᵀ tanh(W_q q + W_k k)) V (Bahdanau et al. 2015, arXiv:1409.0473, appendix A.1.2).

    Holds `B·H·T·T·K` numbers at a time: for short texts.
    """

    turns = False

    def __init__(self, *, d_head: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_head, d_head, bias=False)
        self.key = nn.Linear(d_head, d_head, bias=False)
        self.weight = nn.Linear(d_head, 1, bias=False)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """As `ScaledDotProduct.forward`."""
        check_widths(q, k)
        pairs = self.query(q).unsqueeze(-2) + self.key(k).unsqueeze(-3)  # (B, H, T, T, K)
        scores = self.weight(pairs.tanh()).squeeze(-1).float()  # (B, H, T, T)
        return (scores + as_bias(mask)).softmax(dim=-1).to(v.dtype) @ v  # (B, H, T, V)


ATTENTIONS = {"scaled_dot_product": ScaledDotProduct, "dot_product": DotProduct, "additive": Additive}


class MultiHeadAttention(nn.Module):
    """`n_heads` attentions side by side, each on its own projection, mixed by a last one (Vaswani et al. 2017, 3.2.2)."""

    def __init__(
        self,
        *,
        d_model: int,
        n_heads: int,
        d_head: int | None = None,
        d_value: int | None = None,
        bias: bool = True,
        score: Callable[..., nn.Module] = ScaledDotProduct,
        rotate: Callable[[Tensor], Tensor] = lambda heads: heads,
    ) -> None:
        super().__init__()
        d_head = d_head or head_width(d_model, n_heads)
        d_value = d_value or d_head
        self.n_heads = n_heads
        self.widths = [n_heads * d_head, n_heads * d_head, n_heads * d_value]
        self.qkv = nn.Linear(d_model, sum(self.widths), bias=bias)
        self.score = score(d_head=d_head)
        self.rotate = rotate
        self.output = nn.Linear(n_heads * d_value, d_model, bias=bias)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attend within `x (B, T, D)`, `mask` as in `ScaledDotProduct.forward`; return `(B, T, D)`."""
        projected = self.qkv(x).split(self.widths, dim=-1)  # (B, T, H·K), (B, T, H·K), (B, T, H·V)
        q, k, v = (heads.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for heads in projected)  # (B, H, T, K or V)
        attended = self.score(self.rotate(q), self.rotate(k), v, mask)  # (B, H, T, V)
        return self.output(attended.transpose(1, 2).flatten(-2))  # (B, T, D)


def products_are_faster(q: Tensor) -> bool:
    """Whether, for `q (B, H, T, K)`, the formula written out is faster than torch's kernel.

    On a CPU in bf16 the backward of torch's flash kernel takes a third of a step, and torch's own two products look for rows
    where nothing is seen, of which there are none here (`model/mask.py`). Beyond `PRODUCTS_UP_TO` tokens the `T · T`
    scores cost more than either (`docs/experiments.md`).
    """
    trains_in_bf16 = q.device.type == "cpu" and q.dtype == torch.bfloat16 and q.requires_grad
    return trains_in_bf16 and q.shape[-2] <= PRODUCTS_UP_TO and not torch.compiler.is_compiling()


def head_width(d_model: int, n_heads: int) -> int:
    """Share `d_model` out among the heads. Raises `UserError` when it does not divide."""
    if d_model % n_heads:
        raise UserError(
            f"d_model={d_model} is not divisible by n_heads={n_heads}: choose d_model as a multiple of n_heads"
        )
    return d_model // n_heads


def as_bias(mask: Tensor) -> Tensor:
    """Turn True into 0 and False into -inf, to be added to scores; numbers stay as they are."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=torch.float32).masked_fill(~mask, -torch.inf)


def check_widths(q: Tensor, k: Tensor) -> None:
    """Raise `UserError` when queries and keys cannot be compared."""
    if q.shape[-1] != k.shape[-1]:
        raise UserError(f"queries are {q.shape[-1]} wide and keys {k.shape[-1]}: project both to one width")
