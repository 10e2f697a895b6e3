"""A folder with pretrained weights → this classifier, ready to be fine-tuned; every tensor is accounted for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from errors import UserError
from model.build import build_classifier
from model.classifier import Classifier
from model.encoder import Encoder
from model.pretrained import FAMILIES, Family
from pretrained_files import pretrained_folder, read_config, read_tensors, trained_pooling

log = logging.getLogger("heed")
BUFFERS = ("embeddings.position_ids", "rotary_emb.")  # numbers that are counted, not learned


def load_pretrained(
    *,
    name: str | None,
    n_classes: int,
    vocab_size: int,
    pad_id: int,
    sep_id: int,
    max_len: int,
    dropout: float,
    package: str | None = None,
    revision: str | None = None,
    pooling: str | None = None,
    freeze: int = 0,
    n_segments: int = 1,
) -> Classifier:
    """Build the network that the weights of `name` belong to and load them; the head is new.

    `name`, `package` and `revision` as in `pretrained_files.pretrained_folder`; `vocab_size`, `pad_id` and `sep_id` are the
    tokenizer's; positions beyond `max_len` are left out. `pooling` None is what the weights were trained with: the mean for
    most sentence encoders, else `[CLS]`. The embeddings and the first `freeze` blocks do not learn (0: all do). The weights
    have as many segments as they have, whatever `n_segments`. Raises `UserError` for weights that are missing, damaged or of
    an unknown family, for sizes that do not fit, and for a tensor too many or too few.
    """
    folder = pretrained_folder(name=name, package=package, revision=revision)
    config = read_config(folder, known=FAMILIES)
    family = FAMILIES[config["model_type"]]
    arguments = family.arguments(config)
    check_sizes(folder, arguments, vocab_size=vocab_size, max_len=max_len, freeze=freeze)
    places = arguments["max_len"]
    arguments |= {"n_classes": n_classes, "pad_id": pad_id, "sep_id": sep_id, "max_len": max_len, "dropout": dropout}
    arguments["pooling"] = pooling or trained_pooling(folder, config)
    classifier = build_classifier(**{"attention": "scaled_dot_product", "norm": "layer", **arguments})
    dropped = load_encoder(classifier.encoder, family, read_tensors(folder), folder=folder, places=places)
    log.info("pretrained  %s, %s; dropped: %s", name, config["model_type"], ", ".join(dropped) or "nothing")
    encoder = classifier.encoder
    lowest = (encoder.embedding, encoder.position, encoder.embedding_norm, *encoder.blocks[:freeze])
    for module in lowest if freeze else ():
        module.requires_grad_(False)
    return classifier


def load_encoder(
    encoder: Encoder, family: Family, tensors: dict[str, Tensor], *, folder: Path, places: int
) -> list[str]:
    """Load `tensors`, named as in the file, into `encoder`; return what was dropped, by the beginnings of its names.

    Of the file's positions the last `places` are real. Raises `UserError` that lists what is missing and what is too many.
    """
    tensors = without_prefix(tensors, family)
    expected = encoder.state_dict()
    loaded: dict[str, Tensor] = {}
    missing: list[str] = []
    for ours, theirs in names(family, n_layers=len(encoder.blocks)):
        for kind in ("weight", "bias"):
            if f"{ours}.{kind}" not in expected:
                continue
            wanted = [f"{name}.{kind}" for name in theirs]
            missing += [name for name in wanted if name not in tensors]
            if not missing:
                loaded[f"{ours}.{kind}"] = torch.cat([tensors.pop(name).float() for name in wanted])
    one_segment = tensors.pop("embeddings.token_type_embeddings.weight", None)
    dropped = {name for name in tensors if name.startswith(family.dropped)}
    unused = [name for name in tensors if name not in dropped and not name.startswith(BUFFERS)]
    if missing or unused:
        raise UserError(
            f"{folder}: the weights do not fit their config.json; not found: {listed(missing)}; not used: {listed(unused)}"
        )
    if "position.embedding.weight" in loaded:
        table = loaded["position.embedding.weight"][-places:]
        table = table if one_segment is None else table + one_segment[0].float()  # every token is of the one segment
        loaded["position.embedding.weight"] = table[: len(expected["position.embedding.weight"])]
    wrong = [name for name, tensor in loaded.items() if tensor.shape != expected[name].shape]
    if wrong or loaded.keys() != expected.keys():
        odd = wrong or sorted(expected.keys() ^ loaded.keys())
        raise UserError(f"{folder}: the weights do not fit their config.json; of another size: {listed(odd)}")
    encoder.load_state_dict(loaded)
    return sorted({name.split(".")[0] for name in dropped})


def names(family: Family, *, n_layers: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each of our modules in the encoder, and what it is called in the file: several are laid one below the other."""
    yield from family.embedding.items()
    for i in range(n_layers):
        for ours, theirs in family.block.items():
            yield f"blocks.{i}.{ours}", tuple(f"{family.layer}.{i}.{name}" for name in theirs)


def without_prefix(tensors: dict[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Name the tensors as in a bare encoder: without `bert.` or the like, and without the first names of norms."""
    tensors = {name.replace(".gamma", ".weight").replace(".beta", ".bias"): tensor for name, tensor in tensors.items()}
    first = f"{family.embedding['embedding'][0]}.weight"
    prefix = next((name.removesuffix(first) for name in tensors if name.endswith(first)), "")
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}


def check_sizes(folder: Path, arguments: dict[str, Any], *, vocab_size: int, max_len: int, freeze: int) -> None:
    """Raise `UserError` where tokenizer or settings do not fit the weights."""
    if vocab_size > arguments["vocab_size"]:
        raise UserError(
            f"{folder}: tokenizer.json has {vocab_size:,} tokens, and the weights vectors for {arguments['vocab_size']:,}; "
            "give the tokenizer that belongs to them"
        )
    if max_len > arguments["max_len"]:
        raise UserError(f"model.max_len={max_len}: {folder} has {arguments['max_len']} positions; give at most so many")
    if freeze > arguments["n_layers"]:
        raise UserError(f"model.freeze={freeze}: {folder} has {arguments['n_layers']} blocks; give at most so many")


def listed(tensors: list[str], *, most: int = 6) -> str:
    """Names with commas, the first ones of many."""
    more = f" and {len(tensors) - most} more" if len(tensors) > most else ""
    return ", ".join(tensors[:most]) + more if tensors else "none"
