"""A stopped run goes on bit for bit, and what may happen to a run leaves a sentence and a sound checkpoint."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from benchmarks.resume import twenty_kills
from errors import Stopped, UserError, exit_on_user_error
from files import write_whole
from model.lightning_module import LightningClassifier
from tests.conftest import ROOT
from training.randomness import random_state, set_random_state
from training.resume import configuration_to_resume, folder_to_resume
from training.run import train

QUICK = ("data=files", "experiment=quick", "tokenizer.min_frequency=1", "trainer.accelerator=cpu")
LONG = ("trainer.max_epochs=3", "batch_tokens=64", "save_every=3", "optimizer.lr=0.01", "monitor=val/loss")


@pytest.fixture
def texts(tmp_path):
    """Enough texts for several steps an epoch."""
    rows = [f"{['apple', 'hammer'][i % 2]} {' word' * (i % 7)} {i},{['fruit', 'tool'][i % 2]}" for i in range(60)]
    path = tmp_path / "texts.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def start(configure, texts, tmp_path):
    """Train in this process; return the run's folder."""

    def run(name: str, *overrides: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        train(configure(f"data.train={texts}", *QUICK, *LONG, *overrides), folder, started=time.perf_counter())
        return folder

    return run


def go_on(folder: Path) -> None:
    train(OmegaConf.load(folder / "config.yaml"), folder, started=time.perf_counter(), resumed=True)


class Killed(BaseException):
    pass


def at_step(step: int, action, *, of: str = "training_step"):
    """Do something in the so-manyeth call of a method of the Lightning module, counted from 1."""
    calls, method = [], getattr(LightningClassifier, of)

    def replaced(self, *arguments):
        calls.append(None)
        if len(calls) == step:
            action(self)
        return method(self, *arguments)

    return mock.patch.object(LightningClassifier, of, replaced)


def kill(_) -> None:
    raise Killed


def result(folder: Path) -> tuple[dict, dict, dict]:
    content = torch.load(folder / "best.ckpt", weights_only=True)
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["seconds/total"]
    return {name: weight.numpy().tobytes() for name, weight in content["state_dict"].items()}, content["heed"], metrics


def strip(epochs: list[dict[str, float]]) -> list[dict[str, float]]:
    """Without the seconds, which differ."""
    return [{key: value for key, value in epoch.items() if "second" not in key} for epoch in epochs]


def epoch_lines(capsys) -> list[str]:
    """What has been said about epochs since the last call, without the seconds."""
    lines = capsys.readouterr().out.splitlines()
    return [line.rsplit("  ", 1)[0] for line in lines if line.startswith("epoch")]


@pytest.mark.parametrize(
    ("step", "overrides"),
    [
        (1, ()),  # nothing done yet
        (10, ()),  # within the second epoch of three
        (13, ()),  # the first step of the third
        (10, ("trainer.accumulate_grad_batches=2", "save_every=1")),
        (13, ("trainer.max_epochs=null", "trainer.max_steps=16", "save_every=null")),
        (11, ("sampler=balanced", "+trainer.val_check_interval=0.5", "trainer.precision=bf16-mixed", "save_every=1")),
        (10, ("task=mlm",)),
        (10, ("ema=0.9", "trainer.log_every_n_steps=2")),
    ],
)
def test_a_killed_run_goes_on_bit_for_bit(start, capsys, step, overrides):
    whole = start("whole", *overrides)
    lines = epoch_lines(capsys)
    with at_step(step, kill), pytest.raises(Killed):
        start("killed", *overrides)
    folder = whole.parent / "killed"
    n_seen = len(epoch_lines(capsys))
    go_on(folder)
    assert epoch_lines(capsys) == lines[n_seen:]
    assert result(folder) == result(whole)
    assert {path.name for path in folder.iterdir()} == {path.name for path in whole.iterdir()}
    assert (folder / "metrics.csv").read_text() == (whole / "metrics.csv").read_text()
    if (whole / "report").exists():
        curves = [json.loads((run / "report" / "report.json").read_text())["history"] for run in (folder, whole)]
        assert [strip(epochs) for epochs in curves[:1]] == [strip(epochs) for epochs in curves[1:]]


def steps_taken(folder: Path) -> int:
    """Go on with the run; how many batches it trained on."""
    with mock.patch.object(
        LightningClassifier, "training_step", autospec=True, side_effect=LightningClassifier.training_step
    ) as step:
        go_on(folder)
    return step.call_count


def test_only_what_is_left_is_trained(start, tmp_path):
    with at_step(12, kill), pytest.raises(Killed):
        start("killed")
    assert steps_taken(tmp_path / "killed") == 18 - 9  # three epochs of six; saved after step 9


def test_a_run_that_stopped_early_and_died_in_its_report_trains_no_more_and_reports(start, tmp_path):
    early = ("optimizer.lr=0", "patience=1")
    whole = start("whole", *early)
    with mock.patch("training.finish.write_report", side_effect=Killed), pytest.raises(Killed):
        start("killed", *early)
    (tmp_path / "killed").rename(tmp_path / "moved")
    assert steps_taken(tmp_path / "moved") == 0
    assert result(tmp_path / "moved") == result(whole)


def test_a_run_that_died_before_its_checkpoint_had_its_name_is_not_finished(start, tmp_path):
    whole = start("whole")
    with mock.patch.object(Path, "replace", side_effect=Killed), pytest.raises(Killed):
        start("killed")
    assert {"mixed.ckpt", "metrics.json", "report"} <= {path.name for path in (tmp_path / "killed").iterdir()}
    go_on(folder_to_resume(str(tmp_path / "killed")))
    assert result(tmp_path / "killed") == result(whole)


def test_the_best_epoch_so_far_is_known_after_the_folder_moved(start, tmp_path):
    with at_step(14, kill), pytest.raises(Killed):
        start("killed", "optimizer.lr=0", "mix_linear=false")
    best = (tmp_path / "killed" / "best.ckpt").read_bytes()
    (tmp_path / "killed").rename(tmp_path / "moved")
    go_on(tmp_path / "moved")
    assert (tmp_path / "moved" / "best.ckpt").read_bytes() == best  # nothing was better than the first
    assert not (tmp_path / "killed").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_finishes_the_step_saves_and_says_how_to_go_on(start, tmp_path, caplog, capfd, number):
    before = signal.getsignal(number)
    after = []

    def interrupt(_) -> None:
        os.kill(os.getpid(), number)
        after.append(signal.getsignal(number))

    with at_step(11, interrupt), pytest.raises(Stopped) as stopped, caplog.at_level("INFO", "heed"):
        start("stopped")
    assert stopped.value.code == 128 + number
    assert after == [signal.SIG_DFL]  # the second one ends the process
    assert signal.getsignal(number) is before
    assert capfd.readouterr().err.startswith("stopping after this step")
    folder = tmp_path / "stopped"
    assert torch.load(folder / "last.ckpt", weights_only=True)["global_step"] == 11
    assert caplog.messages[-2:] == [
        f"stopped     after step 11; there is {folder}/best.ckpt and {folder}/last.ckpt",
        f"resume      python train.py resume={folder}",
    ]
    whole = start("whole")
    go_on(folder)
    assert result(folder) == result(whole)


def test_ctrl_c_in_the_last_step_of_an_epoch_ends_after_its_validation(start, tmp_path):
    with at_step(12, lambda _: os.kill(os.getpid(), signal.SIGINT)), pytest.raises(Stopped):
        start("stopped")
    state = torch.load(tmp_path / "stopped" / "last.ckpt", weights_only=True)
    assert (state["global_step"], state["heed_training"]["read"]) == (12, 0)


@pytest.mark.parametrize("clip", ["1.0", "null"])
def test_a_loss_that_is_not_finite_ends_with_its_step_and_saves_nothing_of_it(start, tmp_path, clip):
    class Endless:
        loss = lambda self, logits, *_, **__: logits.sum() * float("inf")  # noqa: E731

    rates = []

    def spoil(module) -> None:
        rates.append(module.trainer.optimizers[0].param_groups[0]["lr"])
        module.task = Endless()

    with at_step(11, spoil), pytest.raises(UserError) as caught:
        start("spoilt", f"trainer.gradient_clip_val={clip}")
    sentence = str(caught.value)
    assert sentence.startswith("step 11: loss ")
    assert f"with a gradient of norm nan at learning rate {rates[0]:g}; nothing of it was saved" in sentence
    for name, step in (("best", 6), ("last", 9)):
        content = torch.load(tmp_path / "spoilt" / f"{name}.ckpt", weights_only=True)
        assert content["global_step"] == step
        assert all(weight.isfinite().all() for weight in content["state_dict"].values())


def test_weights_without_bound_are_not_saved(start, tmp_path):
    def spoil(module) -> None:
        module.trainer.optimizers[0].param_groups[0]["lr"] = float("inf")

    with at_step(9, spoil), pytest.raises(UserError, match=r"step 9: weights without bound at learning rate"):
        start("spoilt")
    assert torch.load(tmp_path / "spoilt" / "last.ckpt", weights_only=True)["global_step"] == 6


@contextmanager
def full_disk(largest: int = 20_000):
    """No file may grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_on_a_full_disk_the_checkpoint_before_stays(start, tmp_path):
    with (
        full_disk() as _,
        pytest.raises(UserError, match=r"last\.ckpt: cannot be written \(File too large\); make room"),
    ):
        start("first")
    with (
        ExitStack() as stack,
        pytest.raises(UserError, match=r"last\.ckpt: cannot be written .*the one written before stays"),
        at_step(8, lambda _: stack.enter_context(full_disk())),
    ):
        start("run")
    folder = tmp_path / "run"
    left = {"last.ckpt", "best.ckpt", "config.yaml", "check.json", "metrics.csv"}
    assert {path.name for path in folder.iterdir()} == left
    assert torch.load(folder / "last.ckpt", weights_only=True)["global_step"] == 6
    whole = start("whole")
    go_on(folder)
    assert result(folder) == result(whole)


def test_a_full_disk_while_data_are_prepared_is_a_sentence(start, tmp_path):
    with full_disk(1_000), pytest.raises(UserError, match=r"cache_dir=.*: no room for what is prepared there"):
        start("run")
    assert list((tmp_path / "run").iterdir()) == []
    assert [path for path in (tmp_path / "cache").iterdir() if "unfinished" in path.name] == []


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old")
    with mock.patch("os.fsync", side_effect=Killed), pytest.raises(Killed):
        write_whole(path, b"new and longer")
    assert path.read_bytes() == b"old"
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_stream_stops_and_does_not_go_on(configure, tmp_path):
    (tmp_path / "hub").mkdir()
    for name in ("train", "test"):
        rows = [json.dumps({"text": f"{name} word {i}", "label": i % 2}) for i in range(200)]
        (tmp_path / "hub" / f"{name}.jsonl").write_text("\n".join(rows))
    stream = (
        "data=hub",
        f"data.name={tmp_path / 'hub'}",
        "data.streaming=true",
        "data.head=50",
        "trainer.max_steps=30",
    )
    folder = tmp_path / "run"
    folder.mkdir()
    with at_step(2, lambda _: os.kill(os.getpid(), signal.SIGINT)), pytest.raises(Stopped):
        train(configure(*QUICK, *LONG, *stream), folder, started=0.0)
    with pytest.raises(UserError, match=r"there is no last\.ckpt, training had not begun or cannot go on"):
        folder_to_resume(str(folder))


@pytest.fixture
def killed(start, tmp_path) -> Path:
    with at_step(5, kill), pytest.raises(Killed):
        start("killed")
    return tmp_path / "killed"


def test_what_does_not_fit_is_a_sentence(killed, texts):
    last, config = killed / "last.ckpt", OmegaConf.load(killed / "config.yaml")
    config.model.d_ff = 32
    with pytest.raises(UserError, match=r"its network is another, d_ff=64 \(here 32\)"):
        train(config, killed, started=0.0, resumed=True)
    before = texts.read_text()
    texts.write_text(before.replace(" 7,", " seven,"))
    with pytest.raises(UserError, match="the data are no longer those it began with"):
        go_on(killed)
    texts.write_text(before)
    whole = last.read_bytes()
    last.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"last\.ckpt: refused, it is damaged"):
        go_on(killed)
    last.write_bytes(whole)
    go_on(killed)
    with pytest.raises(UserError, match=r"the run is finished, see .*metrics\.json"):
        folder_to_resume(str(killed))
    last.write_bytes((killed / "best.ckpt").read_bytes())
    with pytest.raises(UserError, match="it holds weights alone"):
        go_on(killed)


def test_which_run_is_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no unfinished run under outputs/"):
        folder_to_resume("last")
    stopped, finished = ("last.ckpt",), ("last.ckpt", "metrics.json")
    for i, names in enumerate([stopped, (*finished, "mixed.ckpt"), finished, ("best.ckpt",)]):
        folder = Path(f"outputs/{i}")
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).touch()
            os.utime(folder / name, (i, i))
    assert folder_to_resume("last") == Path("outputs/1")
    assert folder_to_resume("outputs/0") == folder_to_resume("outputs/0/last.ckpt") == Path("outputs/0")
    for asked, sentence in [
        ("outputs/2", "the run is finished"),
        ("outputs/3", r"there is no last\.ckpt"),
        ("outputs/3/best.ckpt", "not the state of a run"),
        ("outputs/9", "there is no such folder"),
    ]:
        with pytest.raises(UserError, match=sentence):
            folder_to_resume(asked)


def test_the_configuration_is_that_of_the_folder(tmp_path):
    with pytest.raises(UserError, match=r"config\.yaml: cannot be read"):
        configuration_to_resume(tmp_path, [], known=[])
    (tmp_path / "config.yaml").write_text("a: b")
    with pytest.raises(UserError, match="not the configuration of a run"):
        configuration_to_resume(tmp_path, ["resume=x"], known=[])
    (tmp_path / "config.yaml").write_text("trainer: {max_epochs: 3}")
    assert configuration_to_resume(tmp_path, ["resume=x"], known=["trainer"]).trainer.max_epochs == 3
    with pytest.raises(UserError, match="seed=1 model=small: a run goes on with the configuration in"):
        configuration_to_resume(tmp_path, ["resume=x", "seed=1", "model=small"], known=[])
    with pytest.raises(UserError, match=r"config\.yaml: it lacks r_drop, so another version began the run"):
        configuration_to_resume(tmp_path, ["resume=x"], known=["trainer", "r_drop"])


def test_all_generators_of_random_numbers_are_kept():
    def draw() -> list:
        return [torch.rand(3).tolist(), np.random.normal(size=3).tolist(), random.random(), random.gauss(0, 1)]

    random.gauss(0, 1)  # one is kept for the next call
    state = random_state()
    first = draw()
    draw()
    set_random_state(state)
    assert draw() == first


def test_ctrl_c_before_training_leaves_nothing(tmp_path, capsys):
    folder = tmp_path / "outputs" / "date" / "time"
    folder.mkdir(parents=True)
    with pytest.raises(SystemExit) as stopped, exit_on_user_error(empty_folder=folder):
        raise KeyboardInterrupt
    assert (stopped.value.code, capsys.readouterr().err) == (130, "stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_a_real_run_killed_goes_on_in_its_folder(start, command, texts, tmp_path):
    long = (*LONG, "trainer.max_epochs=30", "patience=30")
    settings = [f"data.train={texts}", f"cache_dir={tmp_path / 'cache'}", *QUICK, *long]
    with subprocess.Popen(
        [sys.executable, ROOT / "train.py", *settings], cwd=tmp_path, stdout=subprocess.DEVNULL
    ) as process:
        while not list(tmp_path.glob("outputs/*/*/best.ckpt")) and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    (folder,) = tmp_path.glob("outputs/*/*")
    assert (folder / "last.ckpt").exists()
    assert not (folder / "metrics.json").exists()
    other = command("train.py", "resume=last", "seed=1")
    assert (other.returncode, other.stdout) == (2, "")
    assert other.stderr.startswith("error: seed=1: a run goes on with the configuration in outputs/")
    resumed = command("train.py", "resume=last")
    assert (resumed.returncode, resumed.stderr) == (0, "")
    name = folder.relative_to(tmp_path)
    assert f"\nresume      {name}/last.ckpt, after step " in resumed.stdout
    assert resumed.stdout.endswith(f'predict     python predict.py {name}/best.ckpt "your text"\n')
    assert list(tmp_path.glob("outputs/*/*")) == [folder]
    assert result(folder) == result(start("whole", *long))
    again = command("train.py", f"resume={name}")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "the run is finished" in again.stderr


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    figures = twenty_kills(20, tmp_path)
    assert figures["exact"] == 20
    assert figures["while_writing"] > 0
