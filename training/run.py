"""One run, step by step: data → network → Lightning module → trainer → test → report."""

from __future__ import annotations

import json
import logging
import math
from contextlib import nullcontext
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import ModelCheckpoint

from data.datamodule import TextDataModule
from errors import Stopped, UserError, is_first_process
from files import write_whole
from model.lightning_module import LightningClassifier
from training.assembly import make_data, make_module
from training.checkpointing import KeepLast, make_keep_last
from training.find_lr import find_lr
from training.finish import test, write_pretraining
from training.learning_curve import learning_curve
from training.monitoring import make_keep_best
from training.processes import first_process_first, n_processes, several_processes, shard_if_asked, share_cores
from training.resume import LAST, check_fit, say_stopped
from training.trainer import make_trainer

log = logging.getLogger("heed")
ONLY = {  # what can be asked for instead of a run; the data are checked before each
    "check": lambda config, data, run_dir: log.info("check       %s", run_dir / "check.json"),
    "find_lr": find_lr,
    "learning_curve": learning_curve,
}


def train(config: DictConfig, run_dir: Path, *, started: float, resumed: bool = False) -> float:
    """Train; leave `best.ckpt`, `config.yaml`, `metrics.json` and `report/` in `run_dir`; print the last lines.

    With `only=check` the data are checked and nothing is trained. `started` is the run's first moment on
    `time.perf_counter`, in seconds. With `resumed`, `run_dir` holds a run that goes on from its `last.ckpt`. Returns the best
    value of the monitor, its negative where less is better, so that sweepers maximise. Raises `UserError`, before anything is
    written, for what cannot work; `Stopped` after Ctrl-C.
    """
    if not resumed and (run_dir / "best.ckpt").exists():
        raise UserError(f"{run_dir} already holds a run: choose another folder with hydra.run.dir=FOLDER")
    check_only(config)
    share_cores(config)
    with first_process_first():
        data = make_data(config)
    if config.only is not None:
        ONLY[config.only](config, data, run_dir)
        write_settings(config, data, run_dir)
        return math.nan
    module = make_module(config, data)
    keep_best = make_keep_best(config, data, run_dir)
    if resumed:
        state = check_fit(run_dir / LAST, architecture=module.classifier.architecture, data_key=data.key)
        started -= state["seconds"]
        log.info("resume      %s, after step %d", run_dir / LAST, state["step"])
    keep_last = make_keep_last(config, data.key, run_dir, started=started)
    keep_last.rows = state["rows"] if resumed else 0
    trainer = fit(config, data, module, keep_best, keep_last, resumed=resumed)
    if not is_first_process():
        return math.nan
    if not keep_best.best_model_path:  # trainer.fast_dev_run=true
        log.info("nothing to test: the trainer kept no checkpoint")
        return math.nan
    if data.task == "mlm":
        write_pretraining(keep_best, run_dir, started=started)
        (run_dir / LAST).unlink(missing_ok=True)
        return -float(keep_best.best_model_score or math.nan)
    test(config, data, trainer, keep_best, run_dir, started=started)
    (run_dir / LAST).unlink(missing_ok=True)  # a finished run does not go on
    assert keep_best.best_model_score is not None
    best = float(keep_best.best_model_score)
    return best if keep_best.mode == "max" else -best


def check_only(config: DictConfig) -> None:
    """Raise `UserError` for an `only` that is unknown, or that several processes cannot do."""
    if config.only not in (None, *ONLY):
        raise UserError(f"only={config.only} is unknown: choose null, {', '.join(ONLY)}")
    if config.only not in (None, "check") and n_processes(config) > 1:
        raise UserError(f"only={config.only} takes one process: leave trainer=ddp and trainer.devices out")


def fit(
    config: DictConfig,
    data: TextDataModule,
    module: LightningClassifier,
    keep_best: ModelCheckpoint,
    keep_last: KeepLast,
    *,
    resumed: bool,
) -> Trainer:
    """Train, from the start or from where `keep_last` left off. Raises `Stopped`, after saying what is there."""
    run_dir = keep_last.path.parent
    trainer = make_trainer(
        config,
        data,
        keep_best,
        d_model=module.classifier.architecture["d_model"],
        on_start=lambda: write_settings(config, data, run_dir),
        keep_last=keep_last,
    )
    if config.trainer.compile:
        module.classifier.compile(dynamic=True)  # in place: the weights keep their names
    shard_if_asked(trainer, module)
    try:
        with several_processes(), keep_last.stop.listening() if trainer.world_size == 1 else nullcontext():
            trainer.fit(module, data, ckpt_path=keep_last.path if resumed else None, weights_only=True)
        keep_last.stop.raise_if_asked()
    except Stopped:
        say_stopped(run_dir, step=trainer.global_step)
        raise
    return trainer


def write_settings(config: DictConfig, data: TextDataModule, run_dir: Path) -> None:
    """Keep what was asked and what was found in the data: once training starts, so that a mistake leaves nothing."""
    if not is_first_process():
        return
    write_whole(run_dir / "config.yaml", OmegaConf.to_yaml(config, resolve=True).encode())
    facts = json.dumps(data.facts, indent=2, ensure_ascii=False) + "\n"
    write_whole(run_dir / "check.json", facts.encode("utf-8", "surrogatepass"))
