"""Tokens → vectors, and which of a text's parts they belong to.

B batch, T tokens, D d_model.
"""

from __future__ import annotations

from torch import Tensor, nn


class SegmentedEmbedding(nn.Embedding):
    """A vector a token plus one for its part, the parts ended by `[SEP]` (Devlin et al. 2019, arXiv:1810.04805, figure 2)."""

    def __init__(self, vocab_size: int, d_model: int, *, padding_idx: int, n_segments: int, sep_id: int) -> None:
        super().__init__(vocab_size, d_model, padding_idx=padding_idx)
        self.segment = nn.Embedding(n_segments, d_model)
        self.sep_id = sep_id

    def forward(self, ids: Tensor) -> Tensor:
        """Map `ids (B, T)` to `(B, T, D)`; a `[SEP]` belongs to the part it ends, padding to the last."""
        ends = (ids == self.sep_id).long()  # (B, T)
        part = (ends.cumsum(dim=-1) - ends).clamp(max=self.segment.num_embeddings - 1)  # (B, T)
        return super().forward(ids) + self.segment(part)  # (B, T, D)
