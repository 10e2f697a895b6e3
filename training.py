"""One run, step by step: data → network → Lightning module → trainer → test → report."""

from __future__ import annotations

import logging
import math
import sys
import warnings
from functools import partial
from pathlib import Path

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning import Trainer, seed_everything
from pytorch_lightning.callbacks import EarlyStopping, LambdaCallback, ModelCheckpoint, RichProgressBar

from data.datamodule import TextDataModule
from errors import UserError
from evaluation.progress import EpochLine
from evaluation.report import write_report
from model.checkpoint import checkpoint_content, load_classifier
from model.lightning_module import MONITORS, LightningClassifier

log = logging.getLogger("heed")


def train(config: DictConfig, run_dir: Path, *, started: float) -> float:
    """Train; leave `best.ckpt`, `config.yaml` and `metrics.json` in `run_dir`; print the report.

    `started` is the run's first moment on `time.perf_counter`, in seconds. Returns the best value of the monitor. Raises
    `UserError`, before anything is written, for what cannot work.
    """
    if (run_dir / "best.ckpt").exists():
        raise UserError(f"{run_dir} already holds a run: choose another folder with hydra.run.dir=FOLDER")
    data = make_data(config)
    module = make_module(config, data)
    keep_best = make_keep_best(config, run_dir)
    trainer = make_trainer(config, run_dir, keep_best, max_epochs=config.trainer.max_epochs or epochs_for(config, data))
    trainer.fit(module, data)
    if not keep_best.best_model_path:  # trainer.fast_dev_run=true
        log.info("nothing to test: the trainer kept no checkpoint")
        return math.nan
    classifier = load_classifier(keep_best.best_model_path)  # what is tested is the file that is left
    assert data.splits is not None
    assert keep_best.best_model_score is not None
    write_report(classifier, data.splits, run_dir, started=started)
    return float(keep_best.best_model_score)


def make_data(config: DictConfig) -> TextDataModule:
    """Texts, tokenizer and batches, ready: the network's sizes depend on them."""
    data = TextDataModule(
        source=partial(instantiate, config.data),
        train_tokenizer=partial(instantiate, config.tokenizer),
        max_len=config.model.max_len,
        truncation=config.truncation,
        batch_tokens=config.batch_tokens,
        seed=config.seed,
    )
    data.setup()
    return data


def make_module(config: DictConfig, data: TextDataModule) -> LightningClassifier:
    """The network with weights drawn from the seed, its optimizer, and what its checkpoint will hold."""
    seed_everything(config.seed, verbose=False)
    network = instantiate(config.model, vocab_size=data.vocab_size, n_classes=len(data.labels), pad_id=data.pad_id)
    millions = sum(parameter.numel() for parameter in network.parameters()) / 1e6
    log.info(
        "network     %s layers, d_model %s, %.2f million parameters",
        config.model.n_layers,
        config.model.d_model,
        millions,
    )
    return LightningClassifier(
        network,
        make_optimizer=instantiate(config.optimizer, _partial_=True),
        label_smoothing=config.label_smoothing,
        checkpoint=checkpoint_content(
            network, labels=data.labels, tokenizer=data.tokenizer, truncation=config.truncation
        ),
    )


def make_keep_best(config: DictConfig, run_dir: Path) -> ModelCheckpoint:
    """Keep the best epoch on validation in `best.ckpt`. Raises `UserError` for a monitor that is not measured."""
    if config.monitor not in MONITORS:
        raise UserError(f"monitor={config.monitor} is not measured: choose one of {', '.join(MONITORS)}")
    return ModelCheckpoint(
        run_dir,
        filename="best",
        monitor=config.monitor,
        mode=MONITORS[config.monitor],
        save_weights_only=True,
        enable_version_counter=False,
    )


def epochs_for(config: DictConfig, data: TextDataModule) -> int:
    """As many epochs as make `steps` optimizer steps, but from 4 to 30."""
    return min(30, max(4, math.ceil(config.steps / len(data.train_dataloader()))))


def make_trainer(config: DictConfig, run_dir: Path, keep_best: ModelCheckpoint, *, max_epochs: int) -> Trainer:
    """Lightning's trainer, quiet: one line an epoch, a progress bar on a terminal only."""
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)  # no advertisements
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")  # batches are ready in memory
    warnings.filterwarnings("ignore", message=".*exists and is not empty.*")  # Hydra made the folder
    warnings.filterwarnings("ignore", message=".*LeafSpec.*")  # Lightning calls what torch renamed
    on_terminal = sys.stdout.isatty()
    callbacks = [
        keep_best,
        EarlyStopping(config.monitor, mode=MONITORS[config.monitor], patience=config.patience),
        EpochLine(),
        LambdaCallback(on_train_start=lambda *_: OmegaConf.save(config, run_dir / "config.yaml", resolve=True)),
        *([RichProgressBar(leave=False)] if on_terminal else []),
    ]
    return Trainer(
        **{**config.trainer, "max_epochs": max_epochs},
        callbacks=callbacks,
        default_root_dir=run_dir,
        logger=False,
        enable_progress_bar=on_terminal,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
