"""Pretrained encoders of the Hugging Face Hub as this encoder: which arguments build them, which tensor goes where.

A network file names its tensors after the classes of `transformers`; the tables below say what each is called here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from model.pretrained_arguments import (
    Config,
    bert_arguments,
    distilbert_arguments,
    modernbert_arguments,
    roberta_arguments,
)


class Family(NamedTuple):
    """How one kind of network is built, and what its tensors are called."""

    arguments: Callable[[Config], dict[str, Any]]  # of `build_classifier`
    embedding: dict[str, tuple[str, ...]]  # our module in the encoder → theirs, several laid one below the other
    layer: str  # what stands before a layer's own names
    block: dict[str, tuple[str, ...]]  # our module in a block → theirs
    dropped: tuple[str, ...]  # how the names begin of what a classifier of one's own does not need


BERT = Family(
    arguments=bert_arguments,
    embedding={
        "embedding": ("embeddings.word_embeddings",),
        "position.embedding": ("embeddings.position_embeddings",),
        "embedding.segment": ("embeddings.token_type_embeddings",),
        "embedding_norm": ("embeddings.LayerNorm",),
    },
    layer="encoder.layer",
    block={
        "attention.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
        "attention.output": ("attention.output.dense",),
        "attention_norm": ("attention.output.LayerNorm",),
        "feed_forward.inner": ("intermediate.dense",),
        "feed_forward.output": ("output.dense",),
        "feed_forward_norm": ("output.LayerNorm",),
    },
    dropped=("pooler.", "cls.", "lm_head.", "classifier.", "qa_outputs."),
)
DISTILBERT = Family(
    arguments=distilbert_arguments,
    embedding={ours: theirs for ours, theirs in BERT.embedding.items() if ours != "embedding.segment"},
    layer="transformer.layer",
    block={
        "attention.qkv": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        "attention.output": ("attention.out_lin",),
        "attention_norm": ("sa_layer_norm",),
        "feed_forward.inner": ("ffn.lin1",),
        "feed_forward.output": ("ffn.lin2",),
        "feed_forward_norm": ("output_layer_norm",),
    },
    dropped=("vocab_", "pre_classifier.", "classifier.", "qa_outputs."),
)
MODERNBERT = Family(
    arguments=modernbert_arguments,
    embedding={
        "embedding": ("embeddings.tok_embeddings",),
        "embedding_norm": ("embeddings.norm",),
        "norm": ("final_norm",),
    },
    layer="layers",
    block={
        "attention.qkv": ("attn.Wqkv",),
        "attention.output": ("attn.Wo",),
        "attention_norm": ("attn_norm",),
        "feed_forward.inner": ("mlp.Wi",),
        "feed_forward.output": ("mlp.Wo",),
        "feed_forward_norm": ("mlp_norm",),
    },
    dropped=("head.", "decoder.", "classifier."),
)
ROBERTA = BERT._replace(arguments=roberta_arguments)
FAMILIES = {  # by the `model_type` of `config.json`
    "bert": BERT,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
    "distilbert": DISTILBERT,
    "modernbert": MODERNBERT,
}
