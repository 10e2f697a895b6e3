"""Token ids → one vector a token: embedding, position, blocks, norm.

B batch, T tokens, D d_model.
"""

from __future__ import annotations

from torch import Tensor, nn

from model.attention import MultiHeadAttention
from model.feed_forward import FeedForward


class EncoderBlock(nn.Module):
    """Attention between tokens, then a feed-forward at each, both added to a residual stream, norms first
    (pre-norm: Xiong et al. 2020, arXiv:2002.04745)."""

    def __init__(self, *, d_model: int, n_heads: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model=d_model, n_heads=n_heads)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model=d_model, d_ff=d_ff)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map `x (B, T, D)` to `(B, T, D)`; `mask (B, 1, 1, T)`, True = may be seen."""
        x = x + self.dropout(self.attention(self.attention_norm(x), mask))  # (B, T, D)
        x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))  # (B, T, D)
        return x


class Encoder(nn.Module):
    """Embed the tokens, add their positions, and let `n_layers` blocks relate them."""

    def __init__(
        self, *, embedding: nn.Embedding, position: nn.Module, blocks: list[EncoderBlock], dropout: float
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.position = position
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(embedding.embedding_dim)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map `ids (B, T)` and `mask (B, T)`, True = real token, to `(B, T, D)`."""
        x = self.dropout(self.position(self.embedding(ids)))  # (B, T, D)
        visible = mask[:, None, None, :]  # (B, 1, 1, T), the same for every head and query
        for block in self.blocks:
            x = block(x, visible)
        return self.norm(x)  # (B, T, D)
