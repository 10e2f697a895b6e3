"""A stopped run goes on bit for bit, and what may happen to a run leaves a sentence and a sound checkpoint."""

import json
import os
import signal
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from data.batching import EncodedTexts
from errors import Stopped, UserError
from model.lightning_module import LightningClassifier
from training import train

QUICK = ("data=files", "experiment=quick", "tokenizer.min_frequency=1", "trainer.accelerator=cpu")
LONG = ("trainer.max_epochs=2", "batch_tokens=64", "save_every=3", "optimizer.lr=0.01", "monitor=val/loss")


@pytest.fixture
def texts(tmp_path):
    """Enough texts for several steps an epoch."""
    rows = [f"{['apple', 'hammer'][i % 2]} {' word' * (i % 7)} {i},{['fruit', 'tool'][i % 2]}" for i in range(60)]
    path = tmp_path / "texts.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def start(configure, texts, tmp_path):
    """Train in this process; return the run's folder."""

    def run(name: str, *overrides: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        train(configure(f"data.train={texts}", *QUICK, *LONG, *overrides), folder, started=time.perf_counter())
        return folder

    return run


def go_on(folder: Path) -> None:
    train(OmegaConf.load(folder / "config.yaml"), folder, started=time.perf_counter(), resumed=True)


class Killed(BaseException):
    pass


def at_step(step: int, action, *, of: str = "training_step"):
    """Do something in the so-manyeth call of a method of the Lightning module, counted from 1."""
    calls, method = [], getattr(LightningClassifier, of)

    def replaced(self, *arguments):
        calls.append(None)
        if len(calls) == step:
            action(self)
        return method(self, *arguments)

    return mock.patch.object(LightningClassifier, of, replaced)


def kill(_) -> None:
    raise Killed


def result(folder: Path) -> tuple[dict, dict, dict]:
    content = torch.load(folder / "best.ckpt", weights_only=True)
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["seconds/total"]
    return {name: weight.numpy().tobytes() for name, weight in content["state_dict"].items()}, content["heed"], metrics


@pytest.mark.parametrize(
    ("step", "overrides"),
    [
        (1, ()),
        (7, ()),
        (11, ()),
        (17, ("+trainer.accumulate_grad_batches=2",)),
        (8, ("trainer.max_epochs=null", "trainer.max_steps=15")),
        (12, ("trainer.max_epochs=null", "trainer.max_steps=15")),
        (9, ("sampler=balanced", "+trainer.val_check_interval=0.5", "trainer.precision=bf16-mixed")),
        (7, ("task=mlm",)),
    ],
)
def test_a_killed_run_goes_on_bit_for_bit(start, step, overrides):
    whole = start("whole", *overrides)
    with at_step(step, kill), pytest.raises(Killed):
        start("killed", *overrides)
    folder = whole.parent / "killed"
    go_on(folder)
    assert result(folder) == result(whole)
    assert {path.name for path in folder.iterdir()} == {path.name for path in whole.iterdir()}
