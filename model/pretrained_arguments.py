"""What `config.json` of a pretrained network says, as arguments of `build_classifier`."""

from __future__ import annotations

from typing import Any

from errors import UserError

Config = dict[str, Any]  # of `config.json`
POST_NORM = {"block": "post_norm", "position": "learned", "mask": "padding", "embedding_norm": True}


def sizes(config: Config) -> dict[str, Any]:
    """What all but DistilBERT call the same."""
    return {
        "vocab_size": config["vocab_size"],
        "max_len": config["max_position_embeddings"],
        "d_model": config["hidden_size"],
        "n_heads": config["num_attention_heads"],
        "n_layers": config["num_hidden_layers"],
        "d_ff": config["intermediate_size"],
    }


def bert_arguments(config: Config) -> dict[str, Any]:
    """Devlin et al. 2019 (arXiv:1810.04805), and RoBERTa, Liu et al. 2019 (arXiv:1907.11692)."""
    return {
        **sizes(config),
        **POST_NORM,
        "n_segments": config["type_vocab_size"],
        "norm_eps": config["layer_norm_eps"],
        "feed_forward": config["hidden_act"],
    }


def roberta_arguments(config: Config) -> dict[str, Any]:
    """As BERT; the first positions are those of padding, and are left out."""
    places = config["max_position_embeddings"] - config["pad_token_id"] - 1
    return {**bert_arguments(config), "max_len": places}


def distilbert_arguments(config: Config) -> dict[str, Any]:
    """Sanh et al. 2019 (arXiv:1910.01108)."""
    return {
        **POST_NORM,
        "vocab_size": config["vocab_size"],
        "max_len": config["max_position_embeddings"],
        "d_model": config["dim"],
        "n_heads": config["n_heads"],
        "n_layers": config["n_layers"],
        "d_ff": config["hidden_dim"],
        "norm_eps": 1e-12,
        "feed_forward": config["activation"],
    }


def modernbert_arguments(config: Config) -> dict[str, Any]:
    """Warner et al. 2024 (arXiv:2412.13663): rotary positions of two bases, one block in some sees the whole text."""
    biases = {config.get(key, False) for key in ("attention_bias", "mlp_bias", "norm_bias")}
    if len(biases) > 1:
        raise UserError("config.json: attention_bias, mlp_bias and norm_bias differ, and this encoder has one for all")
    rope = config.get("rope_parameters") or {}
    kinds = config.get("layer_types")
    every = config.get("global_attn_every_n_layers", 3)
    if kinds is not None:
        every = next((i for i, kind in enumerate(kinds[1:], start=1) if kind == "full_attention"), len(kinds))
        if [kind == "full_attention" for kind in kinds] != [i % every == 0 for i in range(len(kinds))]:
            raise UserError("config.json: layer_types is no regular change of full_attention and sliding_attention")
    return {
        **sizes(config),
        "block": "pre_norm",
        "position": "rotary",
        "mask": "window",
        "window": config.get("local_attention", 128) // 2,
        "global_every": every,
        "rotary_bases": (
            rope.get("full_attention", {}).get("rope_theta", config.get("global_rope_theta", 160_000.0)),
            rope.get("sliding_attention", {}).get("rope_theta", config.get("local_rope_theta", 10_000.0)),
        ),
        "embedding_norm": True,
        "norm_eps": config.get("norm_eps", 1e-5),
        "bias": biases.pop(),
        "feed_forward": {"gelu": "geglu", "silu": "swiglu"}.get(
            config["hidden_activation"], config["hidden_activation"]
        ),
    }
