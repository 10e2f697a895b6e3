"""What a network is called in the configurations of `transformers`, if it is one of theirs."""

from __future__ import annotations

from typing import Any

from errors import UserError

KINDS: dict[
    str, dict[str, tuple]
] = {  # what makes a network one of theirs: arguments of `build_classifier`, what they may be
    "bert": {
        "block": ("post_norm",),
        "position": ("learned",),
        "mask": ("padding",),
        "bias": (True,),
        "feed_forward": ("gelu", "relu"),
    },
    "modernbert": {
        "block": ("pre_norm",),
        "position": ("rotary",),
        "mask": ("window",),
        "feed_forward": ("geglu", "swiglu"),
    },
}
BOTH: dict[str, tuple] = {
    "attention": ("scaled_dot_product",),
    "norm": ("layer",),
    "embedding_norm": (True,),
    "d_head": (None,),
    "d_value": (None,),
    "pooling": ("cls", "mean"),
}


def kind_of(sizes: dict[str, Any]) -> str:
    """Which of `KINDS` the network is. Raises `UserError` that says what keeps it from being the nearest."""
    if sizes.get("n_buckets"):
        raise UserError("transformers has no linear model beside a network: train one with mix_linear=false")
    wrong = {
        kind: {key: choices for key, choices in {**needed, **BOTH}.items() if sizes[key] not in choices}
        for kind, needed in KINDS.items()
    }
    nearest = min(wrong, key=lambda kind: len(wrong[kind]))
    if wrong[nearest]:
        found = ", ".join(f"{key}={sizes[key]}" for key in wrong[nearest])
        needed = ", ".join(f"{key}={' or '.join(map(str, choices))}" for key, choices in wrong[nearest].items())
        raise UserError(f"transformers has no network with {found}: train one with {needed}")
    return nearest


def sizes_in_their_words(sizes: dict[str, Any]) -> dict[str, Any]:
    """What both kinds call the same."""
    return {
        "vocab_size": sizes["vocab_size"],
        "hidden_size": sizes["d_model"],
        "num_attention_heads": sizes["n_heads"],
        "num_hidden_layers": sizes["n_layers"],
        "intermediate_size": sizes["d_ff"],
        "max_position_embeddings": sizes["max_len"],
        "pad_token_id": sizes["pad_id"],
    }


def bert_config(sizes: dict[str, Any]) -> dict[str, Any]:
    """The network as `BertConfig`; a mean over the tokens takes a layer more (`bert_mean`)."""
    return {
        **sizes_in_their_words(sizes),
        "architectures": ["BertForSequenceClassification"],
        "num_hidden_layers": sizes["n_layers"] + (sizes["pooling"] == "mean"),
        "type_vocab_size": sizes["n_segments"],
        "layer_norm_eps": sizes["norm_eps"],
        "hidden_act": sizes["feed_forward"],
        "hidden_dropout_prob": sizes["dropout"],
        "attention_probs_dropout_prob": 0.0,
    }


def modernbert_config(sizes: dict[str, Any]) -> dict[str, Any]:
    """The network as `ModernBertConfig`."""
    everywhere, nearby = sizes["rotary_bases"]
    every = sizes["global_every"] or sizes["n_layers"] + 1
    kinds = [
        "full_attention" if i % every == 0 and sizes["global_every"] else "sliding_attention"
        for i in range(sizes["n_layers"])
    ]
    return {
        **sizes_in_their_words(sizes),
        "architectures": ["ModernBertForSequenceClassification"],
        "layer_types": kinds,
        "local_attention": 2 * sizes["window"],
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": everywhere},
            "sliding_attention": {"rope_type": "default", "rope_theta": nearby},
        },
        **dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias"), sizes["bias"]),
        "norm_eps": sizes["norm_eps"],
        "hidden_activation": {"geglu": "gelu", "swiglu": "silu"}[sizes["feed_forward"]],
        **dict.fromkeys(("embedding_dropout", "mlp_dropout"), sizes["dropout"]),
        "classifier_pooling": sizes["pooling"],
        "classifier_activation": "linear",
        "classifier_bias": True,
    }
