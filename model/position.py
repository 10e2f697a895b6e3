"""Where a token stands: added to its embedding, turned into queries and keys, or taken from the scores.

B batch, T tokens, D d_model, H heads, K d_head.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from errors import UserError
from model.mask import distances

BASE = 10_000.0  # of the wavelengths of sines and rotations
EMBEDDING_STD = 0.02  # of the tokens' embeddings when drawn (`build.initialise`)


class NoPosition(nn.Module):
    """Leave everything as it is: the encoder sees a bag of tokens. The others replace one of the three methods."""

    longest: int | None = None  # tokens it can place; None = any number

    def __init__(self, *, d_model: int, n_heads: int, d_head: int, max_len: int, base: float = BASE) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """What an absolute position adds to the embeddings `x (B, T, D)`."""
        return x

    def rotate(self, heads: Tensor) -> Tensor:
        """How queries and keys `(B, H, T, K)` turn inside attention."""
        return heads

    def bias(self, visible: Tensor) -> Tensor:
        """What becomes of `visible (B, 1, 1 or T, T)`, True = may be seen, before it reaches the scores."""
        return visible


class SinusoidalPosition(NoPosition):
    """Add sines and cosines of geometrically growing wavelengths (Vaswani et al. 2017, arXiv:1706.03762, section 3.5).

    Scaled to the embeddings' spread: its authors multiply the embeddings instead. At full size it would drown them.
    """

    table: Tensor  # (max_len, D)

    def __init__(self, *, d_model: int, n_heads: int, d_head: int, max_len: int, base: float = BASE) -> None:
        super().__init__(d_model=d_model, n_heads=n_heads, d_head=d_head, max_len=max_len)
        self.register_buffer("table", sinusoidal_table(max_len, d_model), persistent=False)
        self.scale = EMBEDDING_STD * math.sqrt(2)  # a sine's own spread is 1/√2

    def forward(self, x: Tensor) -> Tensor:
        table = self.table  # another thread may put one of another length in its place
        if x.shape[1] > len(table):
            self.table = table = sinusoidal_table(x.shape[1], x.shape[2]).to(table)
        return x + self.scale * table[: x.shape[1]]  # (B, T, D)


class LearnedPosition(NoPosition):
    """Add one trained vector a position (Gehring et al. 2017, arXiv:1705.03122; used by BERT); ends at `max_len`."""

    def __init__(self, *, d_model: int, n_heads: int, d_head: int, max_len: int, base: float = BASE) -> None:
        super().__init__(d_model=d_model, n_heads=n_heads, d_head=d_head, max_len=max_len)
        self.longest = max_len
        self.embedding = nn.Embedding(max_len, d_model)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > len(self.embedding.weight):
            raise UserError(
                f"{x.shape[1]} tokens, but learned positions end at max_len={self.longest}: cut the text there"
            )
        return x + self.embedding.weight[: x.shape[1]]  # (B, T, D)


class RotaryPosition(NoPosition):
    """Turn pairs of coordinates by angles that grow with the place (Su et al. 2021, arXiv:2104.09864, equation 34).

    Coordinate i is paired with i + K/2, as in GPT-NeoX: the same up to the order of coordinates.
    """

    def __init__(self, *, d_model: int, n_heads: int, d_head: int, max_len: int, base: float = BASE) -> None:
        super().__init__(d_model=d_model, n_heads=n_heads, d_head=d_head, max_len=max_len)
        if d_head % 2:
            raise UserError(
                f"rotary positions turn pairs, but d_head={d_head} (or d_model / n_heads) is odd: make it even"
            )
        self.base = base

    def rotate(self, heads: Tensor) -> Tensor:
        place = torch.arange(heads.shape[-2], device=heads.device)[:, None]  # (T, 1)
        angle = place * frequencies(heads.shape[-1], self.base).to(heads.device)  # (T, K/2)
        sine, cosine = angle.sin(), angle.cos()
        a, b = heads.float().chunk(2, dim=-1)  # (B, H, T, K/2) each
        return torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1).to(heads.dtype)  # (B, H, T, K)


class AlibiPosition(NoPosition):
    """Take from each score the distance times the head's slope (Press et al. 2022, arXiv:2108.12409), both ways."""

    slopes: Tensor  # (H,)

    def __init__(self, *, d_model: int, n_heads: int, d_head: int, max_len: int, base: float = BASE) -> None:
        super().__init__(d_model=d_model, n_heads=n_heads, d_head=d_head, max_len=max_len)
        self.register_buffer("slopes", torch.tensor(alibi_slopes(n_heads)), persistent=False)

    def bias(self, visible: Tensor) -> Tensor:
        distance = distances(visible[:, 0, 0, :]).abs()  # (T, T)
        return torch.where(visible, -self.slopes[:, None, None] * distance, -torch.inf)  # (B, H, T, T)


def frequencies(width: int, base: float = BASE) -> Tensor:
    """Return base^(-i/width) for i = 0, 2, 4, …, `(⌈width/2⌉,)`: what sinusoidal and rotary positions share."""
    return torch.exp(torch.arange(0, width, 2) * (-math.log(base) / width))


def sinusoidal_table(n_positions: int, d_model: int) -> Tensor:
    """Return `(n_positions, D)`: even columns sin(p / 10000^(i/D)), odd columns the cosine of the same angle; any D."""
    position = torch.arange(n_positions, dtype=torch.float32)[:, None]  # (P, 1)
    angle = position * frequencies(d_model)  # (P, ⌈D/2⌉)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)[:, :d_model]  # (P, D)


def alibi_slopes(n_heads: int) -> list[float]:
    """2^(-8/H), 2^(-16/H), …; where H is no power of two, the rest from twice the next lower one, as its authors do."""
    power = 2 ** int(math.log2(n_heads))
    slopes = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    return slopes if power == n_heads else slopes + alibi_slopes(2 * power)[::2][: n_heads - power]


POSITIONS = {
    "learned": LearnedPosition,
    "sinusoidal": SinusoidalPosition,
    "rotary": RotaryPosition,
    "alibi": AlibiPosition,
    "none": NoPosition,
}
