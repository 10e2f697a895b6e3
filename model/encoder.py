"""Token ids → one vector a token: embedding, position, blocks, norm.

B batch, T tokens, D d_model, H heads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from errors import UserError
from model.attention import as_bias
from model.dropout import Dropout
from model.position import NoPosition


class PreNormBlock(nn.Module):
    """Attention between tokens, then a feed-forward at each, both added to a residual stream, norms first
    (Xiong et al. 2020, arXiv:2002.04745, figure 1b)."""

    final_norm = True  # the stream itself is never normed: the encoder does it at the end

    def __init__(
        self, *, attention: nn.Module, feed_forward: nn.Module, norm: Callable[[], nn.Module], dropout: float
    ) -> None:
        super().__init__()
        self.attention_norm = norm()
        self.attention = attention
        self.feed_forward_norm = norm()
        self.feed_forward = feed_forward
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map `x (B, T, D)` to `(B, T, D)`; `mask (B, 1 or H, 1 or T, T)` says what may be seen."""
        x = x + self.dropout(self.attention(self.attention_norm(x), mask))  # (B, T, D)
        x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))  # (B, T, D)
        return x


class PostNormBlock(PreNormBlock):
    """The same with the norms after each addition (Vaswani et al. 2017, arXiv:1706.03762, section 3.1)."""

    final_norm = False

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """As `PreNormBlock.forward`."""
        x = self.attention_norm(x + self.dropout(self.attention(x, mask)))  # (B, T, D)
        x = self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))  # (B, T, D)
        return x


BLOCKS = {"pre_norm": PreNormBlock, "post_norm": PostNormBlock}
NORMS: dict[str, Callable[..., nn.Module]] = {
    "layer": nn.LayerNorm,  # Ba et al. 2016, arXiv:1607.06450
    "rms": lambda d_model, *, eps, bias: nn.RMSNorm(d_model, eps=eps),  # Zhang and Sennrich 2019, arXiv:1910.07467
}


class Encoder(nn.Module):
    """Embed the tokens, add their positions, and let the blocks relate them, each by its own of the `visibilities`."""

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        position: NoPosition,
        embedding_norm: nn.Module,
        visibilities: Sequence[nn.Module],
        blocks: Sequence[nn.Module],
        norm: nn.Module,
        dropout: float,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.position = position
        self.embedding_norm = embedding_norm
        self.visibilities = list(visibilities)  # they hold no weights; mostly one and the same
        self.dropout = Dropout(dropout)
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map `ids (B, T)` and `mask (B, T)`, True = real token, to `(B, T, D)`.

        Raises `UserError` for a row of only padding.
        """
        check_some_token(mask)
        x = self.dropout(self.embedding_norm(self.position(self.embedding(ids))))  # (B, T, D)
        visible = {
            kind: as_bias(self.position.bias(kind(mask))) for kind in self.visibilities
        }  # (B, 1 or H, 1 or T, T)
        for block, kind in zip(self.blocks, self.visibilities, strict=True):
            x = block(x, visible[kind])
        return self.norm(x)  # (B, T, D)


def check_some_token(mask: Tensor) -> None:
    """Raise `UserError` for a row without a real token; on a GPU, where looking would stall it, `encoding.pad` vouches."""
    if mask.device.type == "cpu" and not torch.compiler.is_compiling() and not mask.any(dim=-1).all():
        row = int(mask.any(dim=-1).int().argmin())
        raise UserError(
            f"row {row} of the batch is padding only: give every text at least one token, [UNK] for an empty one"
        )
