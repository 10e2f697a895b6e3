"""The way back: a classifier as a folder that `transformers.AutoModelForSequenceClassification` opens, with equal logits.

D d_model, C classes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, processors
from torch import Tensor

from encoding import CLS, MASK, PAD, SEP, UNK, special_id
from errors import UserError
from model.from_pretrained import names
from model.pretrained import BERT
from model.task import Regression
from model.text_classifier import TextClassifier

NEEDED = {  # what BERT is, as arguments of `build_classifier`
    "block": "post_norm",
    "position": "learned",
    "mask": "padding",
    "attention": "scaled_dot_product",
    "norm": "layer",
    "embedding_norm": True,
    "bias": True,
    "pooling": "cls",
}
SMALL = 1e-4  # tanh(SMALL · x) / SMALL is x to seven digits
PROBLEMS = {
    "single_label": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}


def save_for_transformers(classifier: TextClassifier, folder: Path) -> None:
    """Write `config.json`, `model.safetensors` and the tokenizer's files.

    Networks of BERT's kind (RoBERTa's and DistilBERT's differ in names alone) become BERT. Raises `UserError` for any other.
    """
    architecture = classifier.network.architecture
    wrong = [f"{key}={architecture[key]}" for key in NEEDED if architecture[key] != NEEDED[key]]
    wrong += [f"{key}={architecture[key]}" for key in ("d_head", "d_value") if architecture[key] is not None]
    wrong += [f"feed_forward={architecture['feed_forward']}"] * (architecture["feed_forward"] not in ("gelu", "relu"))
    if wrong:
        needed = ", ".join(f"{key}={value}" for key, value in NEEDED.items())
        raise UserError(f"transformers has no network with {', '.join(wrong)}: train one with {needed}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_of(classifier), indent=2) + "\n", encoding="utf-8")
    save_file(tensors_of(classifier), folder / "model.safetensors", metadata={"format": "pt"})
    save_tokenizer(classifier, folder)


def config_of(classifier: TextClassifier) -> dict[str, Any]:
    """The network in the words of `transformers`."""
    sizes = classifier.network.architecture
    return {
        "architectures": ["BertForSequenceClassification"],
        "model_type": "bert",
        "vocab_size": sizes["vocab_size"],
        "hidden_size": sizes["d_model"],
        "num_attention_heads": sizes["n_heads"],
        "num_hidden_layers": sizes["n_layers"],
        "intermediate_size": sizes["d_ff"],
        "max_position_embeddings": sizes["max_len"],
        "type_vocab_size": sizes["n_segments"],
        "layer_norm_eps": sizes["norm_eps"],
        "hidden_act": sizes["feed_forward"],
        "hidden_dropout_prob": sizes["dropout"],
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": sizes["pad_id"],
        "id2label": dict(enumerate(classifier.labels)),
        "label2id": {label: number for number, label in enumerate(classifier.labels)},
        "problem_type": PROBLEMS[classifier.task.name],
    }


def tensors_of(classifier: TextClassifier) -> dict[str, Tensor]:
    """The weights under BERT's names.

    `[CLS]` goes to our head as it is, and through a tanh to BERT's: it is made so small before that the tanh changes
    nothing, and large again by the head. A score's scale and the temperature go into the head.
    """
    network, task = classifier.network, classifier.task
    ours, sizes = network.encoder.state_dict(), network.architecture
    tensors: dict[str, Tensor] = {}
    for module, theirs in names(BERT, n_layers=sizes["n_layers"]):
        for kind in ("weight", "bias"):
            if f"{module}.{kind}" in ours:
                parts = ours[f"{module}.{kind}"].chunk(len(theirs))
                tensors |= {f"bert.{name}.{kind}": part.clone() for name, part in zip(theirs, parts, strict=True)}
    tensors.setdefault("bert.embeddings.token_type_embeddings.weight", torch.zeros(1, sizes["d_model"]))
    spread, mean = (task.spread, task.mean) if isinstance(task, Regression) else (1 / task.temperature, 0.0)
    return tensors | {
        "bert.pooler.dense.weight": torch.eye(sizes["d_model"]) * SMALL,
        "bert.pooler.dense.bias": torch.zeros(sizes["d_model"]),
        "classifier.weight": network.head.weight.detach() * spread / SMALL,
        "classifier.bias": network.head.bias.detach() * spread + mean,
    }


def save_tokenizer(classifier: TextClassifier, folder: Path) -> None:
    """Write the tokenizer with the frame `[CLS] … [SEP]` that training gave every text."""
    tokenizer = Tokenizer.from_str(classifier.tokenizer.to_str())
    named = {token: tokenizer.id_to_token(special_id(tokenizer, token)) for token in (PAD, UNK, CLS, SEP, MASK)}
    cls, sep = named[CLS], named[SEP]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(named[token], special_id(tokenizer, token)) for token in (CLS, SEP)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": classifier.max_len,
        **{f"{token[1:-1].lower()}_token": name for token, name in named.items()},
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
