"""After training: a linear model on pairs of tokens joins the network, as much as validation finds likely.

R texts of validation, C classes.
"""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from omegaconf import DictConfig
from torch import Tensor

from data.datamodule import TextDataModule
from evaluation.linear import fit
from files import write_whole
from model.build import build_classifier
from model.calibration import fit_temperature
from model.checkpoint import load_classifier
from model.classifier import Classifier
from model.ngrams import MixedClassifier
from model.task import SingleLabel
from model.text_classifier import TextClassifier
from training.resume import MIXED

log = logging.getLogger("heed")
MOST_BUCKETS, MOST_WEIGHTS = 2**18, 2**24  # 64 MiB of weights at most
SHARES = torch.arange(20) / 20  # of the linear model, among which validation chooses


def mix(config: DictConfig, alone: TextClassifier, data: TextDataModule, path: Path) -> TextClassifier:
    """Put beside the checkpoint `path`, as `MIXED`, the same network with a linear model fitted on the training texts; say what
    that brings.

    The logits become (1 - s) · the network's + s · the linear model's, with the share s of which validation is likeliest at
    the best temperature. (Cheng et al. 2016, arXiv:1606.07792, train the two together: `docs/experiments.md`.) Classes count
    alike in the fit where they did in training. Returns what that file holds. It is not written, and `alone` returned,
    with `mix_linear=false`, where s is 0, where the two are mixed already, and where a stream's texts are not here.
    """
    if not config.mix_linear or data.stream is not None or alone.network.architecture["n_buckets"]:
        return alone
    assert data.splits is not None
    task, network = alone.task, with_linear_model(alone, data, balanced=bool(config.class_weight or config.sampler))
    tokens, truth = alone.encode(data.splits["validation"]["text"][:]), data.encoded["validation"].labels
    ours = alone.logits_of(tokens)  # (R, C)
    linear = alone.outputs_of(network.ngrams.to(alone.device), tokens, width=len(alone.labels))  # (R, C)
    losses = [loss(task, (1 - s) * ours + s * linear, truth) for s in SHARES]
    share = float(SHARES[int(np.argmin(losses))])
    log.info(
        "mixed       with a linear model on pairs of tokens, its share %.2f: loss on validation %.3f, alone %.3f, linear %.3f",
        *(share, min(losses), losses[0], loss(task, linear, truth)),
    )
    if share == 0.0:
        return alone
    parts: list[tuple[Any, float]] = [(network.head, 1 - share), (network.ngrams, share)]
    for part, factor in parts:
        part.weight.data *= factor
        part.bias.data *= factor
    logits = (1 - share) * ours + share * linear
    task = task.calibrated(logits, truth) if task.calibrates else task
    return load_classifier(write_mixed(path, network, task), device=alone.device)


def with_linear_model(alone: TextClassifier, data: TextDataModule, *, balanced: bool) -> MixedClassifier:
    """The same network and, its logits added, a linear model fitted on the training texts."""
    n_buckets = min(MOST_BUCKETS, 2 ** int(np.log2(MOST_WEIGHTS / len(alone.labels))))
    network = cast(MixedClassifier, build_classifier(**{**alone.network.architecture, "n_buckets": n_buckets}))
    network.load_state_dict(alone.network.state_dict(), strict=False)
    fit(network.ngrams, data.encoded["train"], alone.task, rows=data.train_rows, balanced=balanced)
    return network


def loss(task: SingleLabel, logits: Tensor, truth: Tensor) -> float:
    """The mean over the texts of validation, at the temperature that is best for `logits (R, C)`."""
    temperature = fit_temperature(logits, truth) if task.name == "single_label" else 1.0
    return float(task.loss(logits / temperature, truth))


def write_mixed(path: Path, network: Classifier, task: SingleLabel) -> Path:
    """What the checkpoint `path` says, with this network and task in the place of its own; return where it lies."""
    content = torch.load(path, map_location="cpu", weights_only=True)
    content["heed"] |= {"architecture": dict(network.architecture), "task": task.facts()}
    content["state_dict"] = {f"classifier.{name}": weight.cpu() for name, weight in network.state_dict().items()}
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_whole(path.with_name(MIXED), buffer.getbuffer())
    return path.with_name(MIXED)
