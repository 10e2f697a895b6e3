"""The end of a search for good settings: the best of them, to be pasted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf


class PrintBest(Callback):
    """Print the command that repeats the best trial, once Optuna's sweeper has written its result."""

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        import optuna  # not above: it is an extra

        optuna.logging.set_verbosity(optuna.logging.WARNING)

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        found = OmegaConf.load(Path(config.hydra.sweep.dir) / "optimization_results.yaml")
        best = found.best_params
        given = [o for o in config.hydra.overrides.task if o.split("=")[0].lstrip("+") not in {*best, "hparams"}]
        # print, not log: between two runs Hydra's own settings of logging hold.
        print(
            f"best        {abs(found.best_value):.4f}, of {config.hydra.sweeper.n_trials} trials in {config.hydra.sweep.dir}/"
        )
        print("again       python train.py", *given, *(f"{name}={value}" for name, value in best.items()), flush=True)
