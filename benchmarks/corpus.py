"""The texts the speed benchmarks share: `reuters_r8` where it lies beside the project, else the bundled articles."""

from __future__ import annotations

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from benchmarks.common import ROOT

DATASETS = ROOT.parent / "shared" / "datasets"
SHAPE = {"d_model": 256, "n_heads": 4, "n_layers": 4, "d_ff": 1024}
MAX_LEN = 256


def configuration(*overrides: str, corpus: str = "reuters_r8") -> DictConfig:
    """The configuration of a run on `corpus`, cut at 256 tokens: `model=small` with BPE unless `model=` is overridden."""
    folder = DATASETS / corpus
    source = ["data=bbc_news"]
    if folder.exists():
        source = ["data=files", *(f"data.{path.stem}={path}" for path in sorted(folder.glob("*.csv")))]
    shared = [f"model.max_len={MAX_LEN}", "trainer.accelerator=cpu"]
    if not any(override.startswith("model=") for override in overrides):
        shared += ["model=small", "tokenizer=bpe"]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", overrides=[*source, *shared, *overrides])
