"""The best validation score of one run, in this process."""

from __future__ import annotations

import tempfile
from pathlib import Path

from omegaconf import DictConfig

from training.assembly import make_data, make_module
from training.monitoring import make_keep_best
from training.trainer import make_trainer


def best_score(config: DictConfig) -> float:
    """Train as `config` says, and return what the monitor measured in the best epoch."""
    data = make_data(config)
    with tempfile.TemporaryDirectory() as folder:
        keep_best = make_keep_best(config, data, Path(folder))
        trainer = make_trainer(config, data, keep_best, d_model=config.model.d_model, on_start=lambda: None)
        trainer.fit(make_module(config, data), data)
    assert keep_best.best_model_score is not None
    return float(keep_best.best_model_score)
