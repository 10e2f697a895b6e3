"""The texts the speed benchmarks share: `reuters_r8` where it lies beside the project, else the bundled articles."""

from __future__ import annotations

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from benchmarks.common import ROOT

DATASETS = ROOT.parent / "shared" / "datasets"
SHAPE = {"d_model": 256, "n_heads": 4, "n_layers": 4, "d_ff": 1024}
MAX_LEN = 256


def source(corpus: str) -> list[str]:
    """What chooses a corpus that lies beside the project with its own splits; nothing where it is absent."""
    files = sorted((DATASETS / corpus).glob("*.csv"))
    return ["data=files", *(f"data.{path.stem}={path}" for path in files)] if files else []


def configuration(*overrides: str, corpus: str = "reuters_r8") -> DictConfig:
    """The configuration of a run on `corpus`, cut at 256 tokens: `model=small` with BPE unless `model=` is overridden."""
    shared = [f"model.max_len={MAX_LEN}", "trainer.accelerator=cpu"]
    if not any(override.startswith("model=") for override in overrides):
        shared += ["model=small", "tokenizer=bpe"]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", overrides=[*(source(corpus) or ["data=bbc_news"]), *shared, *overrides])
