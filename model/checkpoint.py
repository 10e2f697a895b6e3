"""The one file that training leaves: what it holds, and reading it without Lightning."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from errors import UserError
from model.build import build_classifier
from model.classifier import Classifier
from model.task import SingleLabel, make_task
from model.text_classifier import Columns, TextClassifier

OF_THE_HEAD = (
    "n_classes",
    "pooling",
    "dropout",
    "n_buckets",
)  # arguments in which two networks with one encoder may differ
FORMAT = 2  # raised when an older file can no longer be read


def checkpoint_content(
    network: Classifier,
    *,
    task: SingleLabel,
    tokenizer: Tokenizer,
    truncation: str,
    n_parts: int = 1,
    columns: Columns = Columns(),  # noqa: B008
) -> dict[str, Any]:
    """What a checkpoint says beside the weights: plain strings, numbers, lists and dicts, and never code to run."""
    return {
        "format": FORMAT,
        "architecture": dict(network.architecture),
        "task": task.facts(),
        "tokenizer": tokenizer.to_str(),
        "truncation": truncation,
        "n_parts": n_parts,
        "columns": {**columns._asdict(), "text": list(columns.text)},
        "versions": {name: version(name) for name in ("torch", "tokenizers")},
    }


def load_classifier(
    path: str | Path, *, max_len: int | None = None, precision: str = "auto", device: str | None = None
) -> TextClassifier:
    """Read a checkpoint written by `train.py`; `max_len` tokens are read of a text (None: as many as in training).

    `precision` and `device` as in `TextClassifier`. Raises `UserError` as `read_checkpoint` does, and when the file's parts
    do not fit together.
    """
    facts, weights = read_checkpoint(path)
    if facts.get("task", {}).get("name") == "mlm":
        raise UserError(f"checkpoint {path}: task=mlm taught it no labels; train some with model.init_from={path}")
    try:
        network = build_classifier(**facts["architecture"])
        network.load_state_dict(weights)
        task, tokenizer = make_task(**facts["task"]), Tokenizer.from_str(facts["tokenizer"])
        truncation, n_parts = facts["truncation"], facts.get("n_parts", facts["architecture"]["n_segments"])
        columns = Columns(**facts.get("columns", {}))
    except Exception as error:  # tokenizers raises a bare Exception for JSON it cannot read
        raise UserError(
            f"checkpoint {path}: its parts do not fit together ({type(error).__name__}); train anew"
        ) from error
    classifier = TextClassifier(
        network,
        task=task,
        tokenizer=tokenizer,
        truncation=truncation,
        n_parts=n_parts,
        max_len=max_len,
        precision=precision,
        device=device,
    )
    classifier.columns = columns
    return classifier


def load_tokenizer_of(path: str | Path, texts: Iterable[str], *, key: str) -> Tokenizer:
    """The tokenizer that a checkpoint holds; the texts are not read. Raises `UserError` as `read_checkpoint` does."""
    return Tokenizer.from_str(read_checkpoint(path)[0]["tokenizer"])


def load_encoder_of(network: Classifier, path: str | Path) -> None:
    """Give the network the encoder of another run's checkpoint; its head stays.

    Raises `UserError` as `read_checkpoint` does, and where the two differ by more than head, pooling and dropout.
    """
    facts, weights = read_checkpoint(path)
    theirs, ours = facts["architecture"], network.architecture
    differ = [key for key in theirs if key not in OF_THE_HEAD and theirs[key] != ours.get(key)]
    if differ:
        wanted = " ".join(f"model.{key}={theirs[key]}" for key in differ)
        raise UserError(f"model.init_from={path}: its network is another; give {wanted}")
    prefix = "encoder."
    encoder = {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}
    network.encoder.load_state_dict(encoder)


def read_checkpoint(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return what a checkpoint says (`checkpoint_content`) and the network's weights by name.

    Raises `UserError` when the file is missing, damaged, or another's.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"checkpoint {path}: no such file; give the path of a file that train.py wrote")
    if not zipfile.is_zipfile(path):  # what torch.save writes is a zip; nothing else is given to a pickle reader
        raise UserError(f"checkpoint {path}: refused, it is damaged or no checkpoint; copy it again or train anew")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UserError(f"checkpoint {path}: refused, it holds more than plain values and could run code") from error
    except Exception as error:  # a damaged file fails in many ways
        raise UserError(f"checkpoint {path}: damaged ({type(error).__name__}); copy it again or train anew") from error
    if not isinstance(content, dict) or not isinstance(content.get("heed"), dict) or "state_dict" not in content:
        raise UserError(
            f"checkpoint {path}: not written by Heed (it lacks the key 'heed'); give a file that train.py wrote"
        )
    facts = content["heed"]
    if facts.get("format") != FORMAT:
        raise UserError(
            f"checkpoint {path}: format {facts.get('format')}, this version reads {FORMAT}; use the version that wrote it"
        )
    return facts, {_plain_name(name): weight for name, weight in content["state_dict"].items()}


def _plain_name(name: str) -> str:
    """Drop what Lightning and torch.compile put around the network's own parameter names."""
    return name.removeprefix("classifier.").replace("_orig_mod.", "")
