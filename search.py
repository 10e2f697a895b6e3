"""The end of a search for good settings: the best of them, to be pasted."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

log = logging.getLogger("heed")


class PrintBest(Callback):
    """Print the command that repeats the best trial, once Optuna's sweeper has written its result."""

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        found = OmegaConf.load(Path(config.hydra.sweep.dir) / "optimization_results.yaml")
        best = {name: shortened(value) for name, value in found.best_params.items()}
        given = [o for o in config.hydra.overrides.task if o.split("=")[0].lstrip("+") not in {*best, "hparams"}]
        log.info(
            "best        %.4f, of %s trials in %s",
            abs(found.best_value),
            config.hydra.sweeper.n_trials,
            config.hydra.sweep.dir,
        )
        log.info(
            "again       python train.py %s", " ".join([*given, *(f"{name}={value}" for name, value in best.items())])
        )


def shortened(value: Any) -> Any:
    """A number with the digits that matter."""
    return float(f"{value:.4g}") if isinstance(value, float) else value
