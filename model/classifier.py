"""Token ids → one logit a class.

B batch, T tokens, D d_model, C classes, P pieces of B texts.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from model.encoder import Encoder


class Classifier(nn.Module):
    """Encode, pool, and map linearly to the classes."""

    architecture: dict[str, Any]  # what `build_classifier` was called with; goes into the checkpoint

    def __init__(self, *, encoder: Encoder, pooling: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.head = head

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map `ids (B, T)` and `mask (B, T)`, True = real token, to logits `(B, C)`."""
        return self.head(self.pooled(ids, mask))  # (B, C)

    def pooled(self, ids: Tensor, mask: Tensor) -> Tensor:
        """What the head reads off: one vector a row, `(B, D)`."""
        return self.pooling(self.encoder(ids, mask), mask)  # (B, D)

    def beside(self, ids: Tensor, mask: Tensor) -> Tensor:
        """What each token adds to the logits without passing the encoder, `(B, T, C)`: here nothing."""
        return self.head.weight.new_zeros(*ids.shape, self.head.out_features)


def mean_over_pieces(logits: Tensor, text: Tensor, n_texts: int) -> Tensor:
    """Average `logits (P, C)` over the pieces of each text; `text (P,)` says whose piece each is. Returns `(B, C)`."""
    if len(text) == n_texts:  # one piece each
        return logits
    total = logits.new_zeros(n_texts, logits.shape[-1]).index_add(0, text, logits)  # (B, C)
    count = logits.new_zeros(n_texts).index_add(0, text, logits.new_ones(len(text)))  # (B,); bincount stalls a GPU
    return total / count.unsqueeze(-1)  # (B, C)
