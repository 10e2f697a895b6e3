"""Small corpora, small networks, and runs of the command line, all offline."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from model import Classifier, build_classifier

ROOT = Path(__file__).parent.parent
os.environ["HF_HUB_OFFLINE"] = "1"

SMALL = {
    "vocab_size": 50,
    "n_classes": 3,
    "pad_id": 0,
    "d_model": 16,
    "n_heads": 4,
    "n_layers": 2,
    "d_ff": 32,
    "max_len": 24,
    "dropout": 0.0,
    "attention": "scaled_dot_product",
    "position": "sinusoidal",
    "mask": "padding",
    "block": "pre_norm",
    "norm": "layer",
    "feed_forward": "gelu",
    "pooling": "mean",
}
QUICK = ("experiment=quick", "tokenizer.min_frequency=1", "trainer.accelerator=cpu")
FRUIT = ["ripe red apple", "a sweet pear", "yellow banana peel", "an apple and a pear", "plum jam", "sour green plum"]
TOOLS = ["a heavy hammer", "saw and hammer", "rusty nail", "drill the hole", "a long saw blade", "drill and nail"]


def pytest_configure(config) -> None:
    """Of several processes that run the tests, give each and its children a core of their own: threads that share are slow."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})
        torch.set_num_threads(1)


@pytest.fixture
def network() -> Callable[..., Classifier]:
    """Build a small network in eval mode with a head that is not zero; keyword arguments change its architecture."""

    def build(**changes) -> Classifier:
        torch.manual_seed(0)
        classifier = build_classifier(**{**SMALL, **changes})
        torch.nn.init.normal_(classifier.head.weight)
        if changes.get("n_buckets"):
            torch.nn.init.uniform_(classifier.ngrams.idf, 1, 5)
            torch.nn.init.normal_(classifier.ngrams.weight)
        return classifier.eval()

    return build


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A CSV of two classes with twelve texts."""
    rows = [f"{text},fruit" for text in FRUIT] + [f"{text},tool" for text in TOOLS]
    path = tmp_path / "corpus.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def configure(tmp_path: Path) -> Callable[..., DictConfig]:
    """Compose the configuration as the command line does."""

    def configuration(*overrides: str) -> DictConfig:
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            return compose("config", overrides=[f"cache_dir={tmp_path / 'cache'}", *overrides])

    return configuration


@pytest.fixture
def run(configure, corpus, tmp_path, monkeypatch) -> Callable[..., Path]:
    """Train on the small corpus in this process; return the run's folder. The bootstrap draws few samples, to be quick."""
    monkeypatch.setattr("evaluation.compare.DRAWS", 0)

    def training(*overrides: str, name: str = "run") -> Path:
        from training.run import train

        folder = tmp_path / name
        folder.mkdir()
        train(configure("data=files", f"data.train={corpus}", *QUICK, *overrides), folder, started=time.perf_counter())
        return folder

    return training


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Run one of the project's scripts in a process of its own, in `tmp_path` unless told otherwise."""

    def run(script: str, *arguments: str, cwd: Path = tmp_path, **options) -> subprocess.CompletedProcess:
        environment = {**os.environ, "HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hub"), "COLUMNS": "120"}
        return subprocess.run(
            [sys.executable, str(ROOT / script), *arguments],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            **options,
        )

    return run
