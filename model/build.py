"""The network from plain values alone: every choice by its name, every weight by one table."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from torch import nn

from errors import UserError
from model.attention import ATTENTIONS, MultiHeadAttention, head_width
from model.classifier import Classifier
from model.embedding import SegmentedEmbedding
from model.encoder import BLOCKS, NORMS, Encoder
from model.feed_forward import FEED_FORWARDS
from model.mask import MASKS
from model.pooling import POOLINGS
from model.position import EMBEDDING_STD, POSITIONS

TABLES: dict[str, dict[str, Any]] = {
    "attention": ATTENTIONS,
    "position": POSITIONS,
    "block": BLOCKS,
    "norm": NORMS,
    "feed_forward": FEED_FORWARDS,
    "mask": MASKS,
    "pooling": POOLINGS,
}


def build_classifier(
    *,
    vocab_size: int,
    n_classes: int,
    pad_id: int,
    d_model: int,
    n_heads: int,
    n_layers: int,
    d_ff: int,
    max_len: int,
    dropout: float,
    attention: str,
    position: str,
    mask: str,
    block: str,
    norm: str,
    feed_forward: str,
    pooling: str,
    d_head: int | None = None,
    d_value: int | None = None,
    bias: bool = True,
    window: int | None = None,
    n_segments: int = 1,
    sep_id: int = -1,
) -> Classifier:
    """Build a network and draw its weights from torch's generator; a checkpoint holds exactly these arguments.

    The strings name entries of `TABLES`. `d_head` is the width of a head's queries and keys (None: d_model / n_heads),
    `d_value` that of its values (None: d_head), `bias` whether attention's projections have one, `window` how far
    `mask=window` sees, `n_segments` how many parts a text has, each ended by the token `sep_id`. Raises
    `UserError` for an unknown name, widths that do not fit, and choices that make no sense together.
    """
    architecture = dict(locals())
    part = {key: choose(key, architecture[key]) for key in TABLES}
    check_together(attention=attention, position=position, mask=mask, pooling=pooling)
    make_norm = partial(part["norm"], d_model)
    d_head = d_head or head_width(d_model, n_heads)
    placing = part["position"](d_model=d_model, n_heads=n_heads, d_head=d_head, max_len=max_len)

    def make_block() -> nn.Module:
        return part["block"](
            attention=MultiHeadAttention(
                d_model=d_model,
                n_heads=n_heads,
                d_head=d_head,
                d_value=d_value,
                bias=bias,
                score=part["attention"],
                rotate=placing.rotate,
            ),
            feed_forward=part["feed_forward"](d_model=d_model, d_ff=d_ff),
            norm=make_norm,
            dropout=dropout,
        )

    embedding = nn.Embedding if n_segments == 1 else partial(SegmentedEmbedding, n_segments=n_segments, sep_id=sep_id)
    encoder = Encoder(
        embedding=embedding(vocab_size, d_model, padding_idx=pad_id),
        position=placing,
        visibility=part["mask"](window=window),
        blocks=[make_block() for _ in range(n_layers)],
        norm=make_norm() if part["block"].final_norm else nn.Identity(),
        dropout=dropout,
    )
    classifier = Classifier(
        encoder=encoder, pooling=part["pooling"](d_model=d_model), head=nn.Linear(d_model, n_classes)
    )
    classifier.architecture = architecture
    initialise(classifier, n_layers=n_layers)
    return classifier


def choose(key: str, name: str) -> Any:
    """Return the class a choice stands for. Raises `UserError` that lists the names there are."""
    if name not in TABLES[key]:
        raise UserError(f"model.{key}={name} is unknown: choose one of {', '.join(TABLES[key])}")
    return TABLES[key][name]


def check_together(*, attention: str, position: str, mask: str, pooling: str) -> None:
    """Raise `UserError` for choices that make no sense together."""
    if position == "rotary" and not TABLES["attention"][attention].turns:
        raise UserError(
            f"model.position=rotary needs a dot product, not model.attention={attention}: change one of them"
        )
    if mask == "causal" and pooling == "cls":
        raise UserError(
            "model.mask=causal lets [CLS], the first token, see nothing else: change model.mask or model.pooling"
        )


def initialise(classifier: Classifier, *, n_layers: int) -> None:
    """Draw every weight.

    | tensor                                  | distribution                                                     |
    |-----------------------------------------|------------------------------------------------------------------|
    | embeddings (tokens, positions, segments)| N(0, 0.02²) (Devlin et al. 2019); the row of `[PAD]` is zero      |
    | weights of linear maps                  | N(0, 1/fan_in): keeps the variance (LeCun et al. 1998)            |
    | … that end a residual branch (`output`) | N(0, 1/fan_in) / √(2 n_layers) (Radford et al. 2019, section 2.3) |
    | the classes' head                       | zero: the first loss is ln C                                     |
    | biases                                  | zero                                                             |
    | norms                                   | scale one, shift zero (torch's own)                              |
    """
    for name, module in classifier.named_modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=EMBEDDING_STD)
            if module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
            if name.endswith(".output"):
                module.weight.data /= math.sqrt(2 * n_layers)
    nn.init.zeros_(classifier.head.weight)
