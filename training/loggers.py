"""Where a run's figures go while it trains: always into metrics.csv, and to what else is asked for."""

from __future__ import annotations

import csv
import importlib.util
import logging
import os
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from lightning_fabric.loggers.csv_logs import _ExperimentWriter
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.loggers import CSVLogger, Logger
from pytorch_lightning.utilities import rank_zero_only

from errors import UserError

PACKAGES = {"TensorBoardLogger": "tensorboard", "WandbLogger": "wandb", "MLFlowLogger": "mlflow"}  # that each needs


class MetricsFile(CSVLogger):
    """Write `metrics.csv` into the run's folder, a row as soon as there is one; hyperparameters stand in config.yaml.

    Of a run that goes on, the first `rows` are kept.
    """

    def __init__(self, run_dir: Path, *, rows: int = 0) -> None:
        super().__init__(run_dir, name="", version="", flush_logs_every_n_steps=1)
        self.n_rows = 0
        kept = rows_of(run_dir / "metrics.csv")[:rows]
        if kept:
            self.experiment.metrics = kept
            self.save()

    @rank_zero_only
    def save(self) -> None:
        self.n_rows += len(self.experiment.metrics)
        _ExperimentWriter.save(self.experiment)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """What stands in a `metrics.csv`, empty cells left out; nothing where there is none."""
    if not path.is_file():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return [{key: value for key, value in row.items() if value} for row in csv.DictReader(file)]


def make_loggers(config: DictConfig, run_dir: Path, *, rows: int = 0) -> list[Logger]:
    """The loggers of a run; of one that goes on, the first `rows` of its `metrics.csv` stay.

    Raises `UserError` when the package of a logger is not installed.
    """
    OmegaConf.register_new_resolver("run_dir", lambda: str(run_dir), replace=True)
    loggers: list[Logger] = [MetricsFile(run_dir, rows=rows)]
    if "_target_" in config.logger:
        package = PACKAGES.get(config.logger._target_.rpartition(".")[2])
        if package is not None and importlib.util.find_spec(package) is None:
            raise UserError(
                f"logger={package} needs a package that is not installed: pip install -c constraints.txt -e '.[{package}]'"
            )
        os.environ.setdefault("WANDB_SILENT", "true")  # no advertisements
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.ERROR)
        loggers.append(instantiate(config.logger))
    return loggers
