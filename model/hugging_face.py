"""The way back: a classifier as a folder that `transformers.AutoModelForSequenceClassification` opens, with equal logits.

D d_model, C classes.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, processors
from torch import Tensor

from encoding import CLS, MASK, PAD, SEP, UNK, special_id
from model.from_pretrained import names
from model.hugging_face_config import bert_config, kind_of, modernbert_config
from model.hugging_face_heads import bert_cls, bert_mean, modernbert
from model.pretrained import BERT, MODERNBERT, Family
from model.task import Regression
from model.text_classifier import TextClassifier

PROBLEMS = {
    "single_label": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}


def save_for_transformers(classifier: TextClassifier, folder: Path) -> None:
    """Write `config.json`, `model.safetensors` and the tokenizer's files.

    Networks of BERT's kind (RoBERTa's and DistilBERT's differ in names alone) become BERT, the others ModernBERT. Raises
    `UserError` for a network that is neither.
    """
    kind, sizes = kind_of(classifier.network.architecture), classifier.network.architecture
    config = bert_config(sizes) if kind == "bert" else modernbert_config(sizes)
    config |= {
        "model_type": kind,
        "id2label": dict(enumerate(classifier.labels)),
        "label2id": {label: number for number, label in enumerate(classifier.labels)},
        "problem_type": PROBLEMS[classifier.task.name],
    }
    tensors = bert_tensors(classifier) if kind == "bert" else modernbert_tensors(classifier)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    save_tokenizer(classifier, folder)


def bert_tensors(classifier: TextClassifier) -> dict[str, Tensor]:
    """The weights under BERT's names."""
    sizes = classifier.network.architecture
    tensors = encoder_tensors(classifier, BERT, prefix="bert")
    tensors.setdefault("bert.embeddings.token_type_embeddings.weight", torch.zeros(1, sizes["d_model"]))
    weight, bias = head_of(classifier)
    if sizes["pooling"] == "cls":
        return tensors | bert_cls(weight, bias)
    return tensors | bert_mean(weight, bias, d_ff=sizes["d_ff"], layer=f"bert.encoder.layer.{sizes['n_layers']}")


def modernbert_tensors(classifier: TextClassifier) -> dict[str, Tensor]:
    """The weights under ModernBERT's names."""
    sizes = classifier.network.architecture
    tensors = encoder_tensors(classifier, MODERNBERT, prefix="model")
    return tensors | modernbert(*head_of(classifier), eps=sizes["norm_eps"], norm_bias=sizes["bias"])


def encoder_tensors(classifier: TextClassifier, family: Family, *, prefix: str) -> dict[str, Tensor]:
    """The encoder's weights under a family's names; what is one tensor here may be several there."""
    ours = classifier.network.encoder.state_dict()
    tensors: dict[str, Tensor] = {}
    for module, theirs in names(family, n_layers=classifier.network.architecture["n_layers"]):
        for kind in ("weight", "bias"):
            if f"{module}.{kind}" in ours:
                parts = ours[f"{module}.{kind}"].chunk(len(theirs))
                tensors |= {f"{prefix}.{name}.{kind}": part.clone() for name, part in zip(theirs, parts, strict=True)}
    return tensors


def head_of(classifier: TextClassifier) -> tuple[Tensor, Tensor]:
    """The head's `weight (C, D)` and `bias (C,)`, with what comes after it: a score's scale, or the temperature."""
    head, task = classifier.network.head, classifier.task
    scale, shift = (task.spread, task.mean) if isinstance(task, Regression) else (1 / task.temperature, 0.0)
    return head.weight.detach() * scale, head.bias.detach() * scale + shift


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
