"""A linear model on a text's tokens and pairs of neighbours, whose logits are added to the network's.

B batch, T tokens, N n_buckets, C classes. `real` says which of the 2 T places hold a token or a pair.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.classifier import Classifier

MULTIPLIER = 2_654_435_761  # odd, so that pairs with one first token stay apart (Knuth, volume 3, section 6.4)


def hashed(ids: Tensor, mask: Tensor, n_buckets: int) -> tuple[Tensor, Tensor]:
    """The bucket of each token, then of each pair with the one before, of `ids (B, T)` (Weinberger et al. 2009,
    arXiv:0902.2206). Returns buckets `(B, 2T)`, below `n_buckets`, and real `(B, 2T)`.
    """
    ids = ids.long()
    before = F.pad(ids + 1, (1, 0))[:, :-1]  # (B, T)
    paired = mask & F.pad(mask, (1, 0), value=False)[:, :-1]  # (B, T)
    buckets = torch.stack([ids, before * MULTIPLIER + ids], dim=1) % n_buckets  # (B, 2, T)
    return buckets.flatten(1), torch.stack([mask, paired], dim=1).flatten(1)  # (B, 2T) each


class NgramLinear(nn.Module):
    """TF-IDF of tokens and pairs, of length one, times a weight for each class: (1 + ln tf) · idf, as scikit-learn's
    `TfidfVectorizer(sublinear_tf=True)` weighs them. Fitted, not trained by gradients (`training/mixing.py`)."""

    idf: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, *, n_buckets: int, n_classes: int) -> None:
        super().__init__()
        self.n_buckets = n_buckets
        self.register_buffer("idf", torch.zeros(n_buckets))  # (N,) zero for what training never showed
        self.register_buffer("weight", torch.zeros(n_buckets, n_classes))  # (N, C)
        self.register_buffer("bias", torch.zeros(n_classes))  # (C,)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map `ids (B, T)` and `mask (B, T)`, True = real token, to logits `(B, C)`."""
        return self.by_token(ids, mask).sum(dim=1) + self.bias  # (B, C)

    def by_token(self, ids: Tensor, mask: Tensor) -> Tensor:
        """What each token adds to the logits, `(B, T, C)`: its own weight, and half of that of each pair it is in."""
        buckets, real = hashed(ids, mask, self.n_buckets)  # (B, 2T)
        same = (buckets.unsqueeze(2) == buckets.unsqueeze(1)) & real.unsqueeze(1)  # (B, 2T, 2T)
        tf = same.sum(dim=2).clamp(min=1)  # (B, 2T)
        tfidf = self.idf[buckets] * (1 + tf.log()) * real  # (B, 2T)
        length = (tfidf**2 / tf).sum(dim=1, keepdim=True).sqrt().clamp(min=1e-6)  # (B, 1)
        added = self.weight[buckets] * (tfidf / tf / length).unsqueeze(-1)  # (B, 2T, C)
        tokens, pairs = added.view(ids.shape[0], 2, ids.shape[1], -1).unbind(dim=1)  # (B, T, C) each
        return tokens + pairs / 2 + F.pad(pairs / 2, (0, 0, 0, 1))[:, 1:]  # (B, T, C)


class MixedClassifier(Classifier):
    """The same, and a linear model on pairs of tokens beside it: their logits are added."""

    def __init__(self, *, n_buckets: int, **parts: Any) -> None:
        super().__init__(**parts)
        self.ngrams = NgramLinear(n_buckets=n_buckets, n_classes=self.head.out_features)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """As `Classifier.forward`."""
        return super().forward(ids, mask) + self.ngrams(ids, mask)  # (B, C)

    def beside(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.ngrams.by_token(ids, mask)  # (B, T, C)
