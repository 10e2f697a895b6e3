import json
import time
from pathlib import Path

import pytest
import torch
from sklearn.metrics import accuracy_score

from errors import UserError
from model import load_classifier
from tests.conftest import FRUIT, ROOT, TOOLS
from training import train

QUICK = ("experiment=quick", "tokenizer.min_frequency=1", "trainer.accelerator=cpu")
CHOICES = [f"{path.parent.name}={path.stem}" for path in sorted((ROOT / "conf").glob("*/[!_]*.yaml"))]


@pytest.fixture
def run(configure, corpus, tmp_path):
    """Train on the small corpus in this process; return the run's folder."""

    def training(*overrides: str, name: str = "run") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        train(configure("data=files", f"data.train={corpus}", *QUICK, *overrides), folder, started=time.perf_counter())
        return folder

    return training


def weights(folder: Path) -> torch.Tensor:
    return torch.cat([p.flatten() for p in load_classifier(folder / "best.ckpt").network.parameters()])


def test_a_run_leaves_checkpoint_configuration_and_metrics(run):
    folder = run()
    assert {path.name for path in folder.iterdir()} == {"best.ckpt", "config.yaml", "metrics.json"}
    metrics = json.loads((folder / "metrics.json").read_text())
    keys = {"test/accuracy", "test/macro_f1", "baseline/accuracy", "majority/accuracy", "seconds/total"}
    assert keys <= metrics.keys()
    assert metrics["majority/accuracy"] == 0.5


def test_the_test_metric_is_the_reloaded_checkpoints_metric(run, tmp_path):
    unseen = [("a red apple", "fruit"), ("hammer and nail", "tool"), ("pear jam", "fruit"), ("fruit drill", "tool")]
    rows = "".join(f"{text},{label}\n" for text, label in unseen)
    (tmp_path / "test.csv").write_text("text,label\n" + rows)
    folder = run(f"data.test={tmp_path / 'test.csv'}", "trainer.max_epochs=3", "optimizer.lr=0.01")
    predictions = load_classifier(folder / "best.ckpt").predict([text for text, _ in unseen])
    expected = accuracy_score([label for _, label in unseen], [prediction.label for prediction in predictions])
    assert json.loads((folder / "metrics.json").read_text())["test/accuracy"] == expected


def test_it_learns(run, corpus):
    folder = run(f"data.validation={corpus}", "trainer.max_epochs=60", "patience=60", "optimizer.lr=0.01")
    labels = [prediction.label for prediction in load_classifier(folder / "best.ckpt").predict(FRUIT + TOOLS)]
    assert accuracy_score(["fruit"] * 6 + ["tool"] * 6, labels) >= 0.8


def test_a_seed_fixes_the_result(run):
    first, again, other = run(name="1"), run(name="2"), run("seed=1", name="3")
    assert torch.equal(weights(first), weights(again))
    assert not torch.equal(weights(first), weights(other))


def test_the_checkpoint_opens_with_weights_only_and_holds_no_configuration_object(run):
    content = torch.load(run() / "best.ckpt", weights_only=True)
    assert content["heed"]["labels"] == ["fruit", "tool"]
    assert "optimizer_states" not in content


@pytest.mark.parametrize("choice", [c for c in CHOICES if not c.startswith("data=")])
def test_every_choice_of_the_configuration_runs_one_step(run, choice):
    size = () if choice.startswith("experiment=") else ("trainer.max_epochs=1",)
    run(choice, "+trainer.limit_train_batches=1", *size)


@pytest.mark.parametrize("choice", [c for c in CHOICES if c.startswith("data=")])
def test_every_source_of_the_configuration_composes(configure, choice):
    assert configure(choice).data._target_ == f"data.sources.{choice.removeprefix('data=')}"


def test_help_lists_every_group_and_choice():
    text = (ROOT / "conf" / "config.yaml").read_text()
    for choice in CHOICES:
        group, name = choice.split("=")
        (line,) = [line for line in text.splitlines() if line.strip().startswith(f"{group}  ")]
        assert f" {name} " in line, choice


def test_fast_dev_run_does_not_crash(run):
    assert list(run("+trainer.fast_dev_run=true").glob("*.ckpt")) == []


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.d_model=33", "d_model=33 is not divisible by n_heads=2"),
        ("model.position=typo", "model.position=typo is unknown: choose one of learned, sinusoidal"),
        ("monitor=val/acc", "monitor=val/acc is not measured: choose one of val/loss, val/accuracy, val/macro_f1"),
        ("batch_tokens=10", "batch_tokens=10 holds no text of max_len=64"),
        ("optimizer.schedule=step", "optimizer.schedule=step is unknown"),
        ("data.train=nowhere.csv", "nowhere.csv: no such file"),
    ],
)
def test_a_mistake_is_a_sentence_and_leaves_nothing(run, tmp_path, override, sentence):
    with pytest.raises(Exception, match=sentence) as caught:
        run(override)
    assert isinstance(caught.value, UserError) or isinstance(caught.value.__cause__, UserError)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_folder_that_holds_a_run_is_kept(run, tmp_path, configure, corpus):
    folder = run()
    before = (folder / "best.ckpt").read_bytes()
    with pytest.raises(UserError, match="already holds a run"):
        train(configure("data=files", f"data.train={corpus}", *QUICK), folder, started=0.0)
    assert (folder / "best.ckpt").read_bytes() == before
