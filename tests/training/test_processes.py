"""Several processes that train one network."""

import csv
import json

import pytest
import torch

from errors import UserError, is_first_process
from tests.conftest import FRUIT, QUICK, TOOLS
from training.processes import local_processes, n_processes

EQUAL = ("model.dropout=0.0", "trainer.max_epochs=2", "batch_tokens=64")


@pytest.fixture
def texts(tmp_path):
    """Sixty texts with labels, a validation split whose batches do not divide by two, and a test split."""
    rows = [f"{text} number {i},{label}" for i in range(5) for label in ("fruit", "tool") for text in of[label]]
    paths = {"train": rows, "validation": rows[:27], "test": rows[30:40]}
    for name, lines in paths.items():
        (tmp_path / f"{name}.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    return ["data=files", "data.drop_leaks=false", *(f"data.{name}={tmp_path}/{name}.csv" for name in paths)]


of = {"fruit": FRUIT, "tool": TOOLS}


def figures(folder) -> list[dict[str, float]]:
    with open(folder / "metrics.csv") as file:
        return [{key: float(value) for key, value in row.items() if value} for row in csv.DictReader(file)]


def weights(folder) -> dict[str, torch.Tensor]:
    return torch.load(folder / "best.ckpt", weights_only=True)["state_dict"]


def compare(command, run, texts, tmp_path, *strategy: str) -> str:
    """Two processes are to do what one does with twice the batch; return what they printed."""
    shared = (*texts, *QUICK, *EQUAL, f"cache_dir={tmp_path / 'cache'}", "trainer.log_every_n_steps=1")
    result = command("train.py", *shared, *strategy, "hydra.run.dir=two")
    assert (result.returncode, result.stderr) == (0, "")
    one = run(*shared, "batch_tokens=128", name="one")
    two = tmp_path / "two"
    assert {path.name for path in two.iterdir()} == {path.name for path in one.iterdir()}
    assert [path.name for path in tmp_path.iterdir() if path.name in ("outputs", "config.yaml")] == []
    assert len(figures(one)) > 8
    for ours, theirs in zip(figures(two), figures(one), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)  # loss, gradient norm, validation's metrics
    for name, weight in weights(one).items():
        torch.testing.assert_close(weights(two)[name], weight, atol=5e-4, rtol=0)
    assert json.loads((two / "check.json").read_text())["rows"] == {"train": 60, "validation": 27, "test": 10}
    return result.stdout


def test_two_processes_do_what_one_does_with_twice_the_batch(command, run, texts, tmp_path):
    lines = compare(command, run, texts, tmp_path, "trainer=ddp").splitlines()
    heads = [line.split()[0] for line in lines]
    assert len(heads) == len(set(heads)) + 1  # two epochs, every other line once
    assert ", 2 processes" in next(line for line in lines if line.startswith("device"))


@pytest.mark.slow
def test_weights_in_parts_give_the_same(command, run, texts, tmp_path):
    compare(command, run, texts, tmp_path, "trainer=fsdp", "trainer.devices=2", "trainer.accelerator=cpu")


@pytest.mark.slow
def test_a_sweep_runs_several_processes_one_after_the_other(command, texts, tmp_path):
    result = command("train.py", "--multirun", *texts, *QUICK, "trainer=ddp", "seed=0,1", "hydra.sweep.dir=sweep")
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(path.parent.name for path in tmp_path.glob("sweep/*/metrics.json")) == ["0", "1"]
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(
    ("variables", "first"),
    [
        ({}, True),
        ({"RANK": "0", "LOCAL_RANK": "0"}, True),
        ({"RANK": "2", "LOCAL_RANK": "0"}, False),
        ({"LOCAL_RANK": "1"}, False),
        ({"NODE_RANK": "1"}, False),
        ({"SLURM_PROCID": "3"}, False),
        ({"SLURM_PROCID": "0"}, True),
    ],
)
def test_one_process_speaks(monkeypatch, variables, first):
    for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_first_process() is first


def test_processes_are_counted(configure):
    assert n_processes(configure()) == 1
    assert n_processes(configure("trainer=ddp", "trainer.num_nodes=3", "trainer.accelerator=cpu")) == 6
    assert n_processes(configure("trainer=ddp", "trainer.devices=[0,2]", "trainer.accelerator=cpu")) == 2


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (("trainer.devices=2",), "trainer.devices=2 are several processes: add trainer=ddp"),
        (("trainer=ddp", "trainer.devices=0"), "trainer.devices=0 does not work: give a whole number of at least 1"),
        (("trainer=ddp", "trainer.devices=two"), "trainer.devices=two does not work"),
    ],
)
def test_a_number_of_processes_that_cannot_work_is_a_sentence(configure, overrides, sentence):
    with pytest.raises(UserError, match=sentence):
        local_processes(configure(*overrides))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_fsdp_is_a_sentence(configure):
    with pytest.raises(UserError, match=r"0 GPUs are here: give fewer, or trainer=ddp trainer\.accelerator=cpu"):
        local_processes(configure("trainer=fsdp"))


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (("trainer=ddp", "trainer.devices=7"), "validation has fewer texts than there are processes"),
        (
            ("trainer=fsdp", "trainer.devices=1", "ema=0.9"),
            "ema=0.9 averages whole weights, and trainer=fsdp has parts",
        ),
        (("trainer=ddp", "only=find_lr"), "only=find_lr takes one process"),
    ],
)
def test_what_several_processes_cannot_do_is_a_sentence(run, tmp_path, overrides, sentence):
    with pytest.raises(UserError, match=sentence):
        run(*overrides)
    assert list((tmp_path / "run").iterdir()) == []
