"""The encoders compared: ours, `transformers`' BERT, `nn.TransformerEncoder` and `x-transformers`, all of one shape.

B batch, T tokens, D d_model, C classes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification
from x_transformers import Encoder, TransformerWrapper

from data.batching import Batch, EncodedTexts


class Meter:
    """Count the real tokens a network is given, and when: `rate` is tokens a second between two of its calls."""

    def __init__(self, network: nn.Module) -> None:
        self.times: list[float] = []
        self.tokens: list[int] = []
        self.padded: list[int] = []
        network.register_forward_pre_hook(self._note, with_kwargs=True)

    def _note(self, network: nn.Module, arguments: tuple, keywords: dict[str, Any]) -> None:
        mask = keywords["attention_mask"] if "attention_mask" in keywords else arguments[1]
        self.times.append(time.perf_counter())
        self.tokens.append(int(mask.sum()))
        self.padded.append(mask.numel())

    def rate(self, *, warm_up: int) -> float:
        return sum(self.tokens[warm_up:-1]) / (self.times[-1] - self.times[warm_up])

    def real_share(self) -> float:
        return sum(self.tokens) / sum(self.padded)


def bert(
    *, vocab_size: int, n_classes: int, max_len: int, d_model: int, n_heads: int, n_layers: int, d_ff: int
) -> nn.Module:
    config = BertConfig(
        vocab_size=vocab_size,
        hidden_size=d_model,
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        intermediate_size=d_ff,
        max_position_embeddings=max_len,
        pad_token_id=0,
    )
    config.num_labels = n_classes
    return BertForSequenceClassification(config)


class TorchEncoder(nn.Module):
    """`nn.TransformerEncoder` with learned positions and mean pooling."""

    def __init__(
        self, *, vocab_size: int, n_classes: int, max_len: int, d_model: int, n_heads: int, n_layers: int, d_ff: int
    ) -> None:
        super().__init__()
        self.embedding, self.position = nn.Embedding(vocab_size, d_model, padding_idx=0), nn.Embedding(max_len, d_model)
        layer = nn.TransformerEncoderLayer(d_model, n_heads, d_ff, 0.1, F.gelu, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, n_layers, nn.LayerNorm(d_model), enable_nested_tensor=False)
        self.head = nn.Linear(d_model, n_classes)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.embedding(ids) + self.position.weight[: ids.shape[1]]  # (B, T, D)
        return self.head(mean(self.encoder(x, src_key_padding_mask=~mask), mask))  # (B, C)


class XTransformersEncoder(nn.Module):
    """The encoder of `x-transformers` with mean pooling."""

    def __init__(
        self, *, vocab_size: int, n_classes: int, max_len: int, d_model: int, n_heads: int, n_layers: int, d_ff: int
    ) -> None:
        super().__init__()
        layers = Encoder(
            dim=d_model,
            depth=n_layers,
            heads=n_heads,
            attn_dim_head=d_model // n_heads,
            ff_mult=d_ff / d_model,
            attn_dropout=0.1,
            ff_dropout=0.1,
            attn_flash=True,
        )
        self.encoder = TransformerWrapper(num_tokens=vocab_size, max_seq_len=max_len, attn_layers=layers)
        self.head = nn.Linear(d_model, n_classes)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.head(mean(self.encoder(ids, mask=mask, return_embeddings=True), mask))  # (B, C)


def mean(x: Tensor, mask: Tensor) -> Tensor:
    weights = mask.unsqueeze(-1).to(x.dtype)  # (B, T, 1)
    return (x * weights).sum(dim=1) / weights.sum(dim=1)  # (B, D)


def random_batches(encoded: EncodedTexts, *, size: int, seed: int) -> Iterator[Batch]:
    """Batches of `size` texts in random order, padded to the longest."""
    order = torch.randperm(len(encoded), generator=torch.Generator().manual_seed(seed))
    for rows in order.split(size):
        yield encoded[rows.numpy()]


def plain_loop(network: nn.Module, batches: Iterator[Batch], *, steps: int) -> None:
    """The loop of a tutorial: forward, backward, AdamW, in fp32."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-5)
    network.train()
    for _, batch in zip(range(steps), batches, strict=False):
        optimizer.zero_grad()
        F.cross_entropy(network(batch["ids"], batch["mask"]), batch["labels"]).backward()
        optimizer.step()
