import csv
import importlib.util

import pytest
import torch
from pytorch_lightning import Callback, Trainer

from errors import UserError
from tests.model.test_lightning_module import QUIET, loader, module  # noqa: F401 fixtures
from training.loggers import MetricsFile


def test_every_run_leaves_its_figures(module, loader, tmp_path):  # noqa: F811
    norms: list[float] = []

    class Watch(Callback):
        def on_before_optimizer_step(self, trainer, pl_module, optimizer) -> None:
            gradients = [p.grad.flatten() for p in pl_module.parameters() if p.grad is not None]
            norms.append(float(torch.linalg.vector_norm(torch.cat(gradients))))

    logger = MetricsFile(tmp_path)
    settings = {**QUIET, "logger": logger, "max_epochs": 2, "num_sanity_val_steps": 0, "log_every_n_steps": 2}
    trainer = Trainer(accelerator="cpu", callbacks=[Watch()], gradient_clip_val=0.5, **settings)
    trainer.fit(module(), loader, loader)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.csv"]
    rows = list(csv.DictReader((tmp_path / "metrics.csv").open()))
    found = [float(row["train/grad_norm"]) for row in rows if row["train/grad_norm"]]
    assert found == pytest.approx(norms[1::2])  # before they were clipped, every second step
    assert [int(row["step"]) for row in rows if row["val/loss"]] == [2, 5]
    rates = [float(row["train/lr"]) for row in rows if row["train/lr"]]
    assert rates == pytest.approx([0.1 / 3, 0.1, 0.1 / 3])  # up for three steps of six, and down


@pytest.mark.parametrize("name", ["tensorboard", "wandb", "mlflow"])
def test_a_package_that_lacks_is_a_sentence(run, tmp_path, monkeypatch, name):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None if package == name else find(package))
    with pytest.raises(UserError, match=rf"logger={name} needs a package .* pip install .*'.\[{name}\]'"):
        run(f"logger={name}")
    assert list((tmp_path / "run").iterdir()) == []


def test_tensorboard_gets_the_figures(run):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = run("logger=tensorboard")
    events = EventAccumulator(str(folder / "tensorboard")).Reload()
    assert {"val/loss", "val/accuracy", "train/loss"} <= set(events.Tags()["scalars"])
    assert (folder / "metrics.csv").exists()


@pytest.mark.slow
def test_wandb_keeps_a_run_on_this_disk(command, corpus, tmp_path):
    pytest.importorskip("wandb")
    result = command(
        "train.py", "data=files", "data.train=corpus.csv", "experiment=quick", "logger=wandb", "hydra.run.dir=r"
    )
    assert result.returncode == 0, result.stderr
    assert list((tmp_path / "r").glob("wandb/offline-run-*/*.wandb"))


@pytest.mark.slow
def test_mlflow_keeps_a_run_in_one_file(run, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    run("logger=mlflow")
    found = mlflow.tracking.MlflowClient("sqlite:///mlflow.db").search_runs(["1"])
    assert "val/loss" in found[0].data.metrics
