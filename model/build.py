"""The network from plain values alone: every choice by its name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import nn

from errors import UserError
from model.attention import ATTENTIONS, MultiHeadAttention, head_width
from model.classifier import Classifier
from model.embedding import SegmentedEmbedding
from model.encoder import BLOCKS, NORMS, Encoder
from model.feed_forward import FEED_FORWARDS
from model.initialise import initialise
from model.mask import MASKS, PaddingMask
from model.ngrams import MixedClassifier
from model.pooling import POOLINGS
from model.position import BASE, POSITIONS

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
    embedding_norm: bool = False,
    norm_eps: float = 1e-5,
    global_every: int | None = None,
    rotary_bases: Sequence[float] = (BASE, BASE),
    n_buckets: int = 0,
) -> Classifier:
    """Build a network and draw its weights from torch's generator; a checkpoint holds exactly these arguments.

    The strings name entries of `TABLES`. `d_head` is the width of a head's queries and keys (None: d_model / n_heads),
    `d_value` of its values (None: d_head), `bias` whether the blocks' maps and norms have one, `window` how far
    `mask=window` sees (not in each `global_every`th block, the first being one), `n_segments` how many parts a text has,
    each ended by `sep_id`; `embedding_norm` norms the embeddings, and a first block with its norm first does not again;
    `rotary_bases` are those of blocks that see all and of others; `n_buckets` are those of a linear model beside the network
    (0: none). Raises `UserError` for what does not fit together.
    """
    architecture = {**locals(), "rotary_bases": list(rotary_bases)}
    part = {key: choose(key, architecture[key]) for key in TABLES}
    check_together(attention=attention, position=position, mask=mask, pooling=pooling)
    make_norm = partial(part["norm"], d_model, eps=norm_eps, bias=bias)
    d_head = d_head or head_width(d_model, n_heads)
    place = partial(part["position"], d_model=d_model, n_heads=n_heads, d_head=d_head, max_len=max_len)
    placing = place(base=rotary_bases[0])
    nearby = place(base=rotary_bases[1]) if mask == "window" else placing
    everywhere, in_sight = PaddingMask(), part["mask"](window=window)
    sees_all = [global_every is not None and i % global_every == 0 for i in range(n_layers)]

    attend = partial(MultiHeadAttention, d_model=d_model, n_heads=n_heads, d_head=d_head, d_value=d_value, bias=bias)

    def make_block(sees_all: bool) -> nn.Module:
        return part["block"](
            attention=attend(score=part["attention"], rotate=(placing if sees_all else nearby).rotate),
            feed_forward=part["feed_forward"](d_model=d_model, d_ff=d_ff, bias=bias),
            norm=make_norm,
            dropout=dropout,
        )

    embedding = nn.Embedding if n_segments == 1 else partial(SegmentedEmbedding, n_segments=n_segments, sep_id=sep_id)
    encoder = Encoder(
        embedding=embedding(vocab_size, d_model, padding_idx=pad_id),
        position=placing,
        embedding_norm=make_norm() if embedding_norm else nn.Identity(),
        visibilities=[everywhere if all_ else in_sight for all_ in sees_all],
        blocks=[make_block(all_) for all_ in sees_all],
        norm=make_norm() if part["block"].final_norm else nn.Identity(),
        dropout=dropout,
    )
    make = partial(MixedClassifier, n_buckets=n_buckets) if n_buckets else Classifier
    classifier = make(encoder=encoder, pooling=part["pooling"](d_model=d_model), head=nn.Linear(d_model, n_classes))
    if embedding_norm and part["block"].final_norm:
        encoder.blocks[0].attention_norm = nn.Identity()  # its input is normed already
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
