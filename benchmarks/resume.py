"""Does a killed run go on bit for bit? Twenty real runs of `train.py`, each killed with SIGKILL at a random moment and resumed.

    python -m benchmarks.resume [KILLS]

The moments are spread over the run's life from the first state on; each fourth kill waits for a file that is being written.
A run counts as exact when each of its steps read the same batch and had the same loss as in the run that nobody stopped, and
its weights, checkpoint and metrics are the same, all bit for bit. Also measures what share of the default run goes into
saving. Writes `benchmarks/results/resume.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import torch

from benchmarks.common import ROOT, write_result
from training.resume import is_finished

WORDS = {"fruit": ["apple", "pear", "plum"], "tool": ["hammer", "saw", "drill"]}
SMALL = [
    "data=files",
    "data.train=texts.csv",
    "tokenizer.min_frequency=1",
    "trainer.accelerator=cpu",
    "cache_dir=cache",
]
SMALL += ["model.d_model=32", "model.d_ff=64", "model.max_len=32", "batch_tokens=256", "monitor=val/loss"]
SMALL += ["trainer.max_epochs=5", "save_every=4"]


def write_texts(path: Path, n_texts: int = 500) -> None:
    """A CSV of two classes, of which one word in five is of the other class."""
    rng = random.Random(0)
    rows = []
    for i in range(n_texts):
        label = rng.choice(list(WORDS))
        other = next(name for name in WORDS if name != label)
        words = [rng.choice(WORDS[other if rng.random() < 0.2 else label]) for _ in range(rng.randint(3, 25))]
        rows.append(f"{' '.join(words)} {i},{label}")
    path.write_text("text,label\n" + "\n".join(rows) + "\n")


def spied(log: str, arguments: list[str], *, slowly: bool) -> None:
    """Be `train.py`, and write down each step's batch and loss, the weights at the end, and the seconds of saving.

    `slowly`, each file takes 20 ms more before it stands under its name, so that a kill can meet it.
    """
    from model.lightning_module import LightningClassifier
    from training.checkpointing import KeepLast

    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    step, save, write_out, seconds = LightningClassifier.training_step, KeepLast._save, os.fsync, [0.0]

    def training_step(self: LightningClassifier, batch: dict[str, torch.Tensor], index: int) -> torch.Tensor:
        loss = step(self, batch, index)
        os.write(
            file, f"{self.global_step} {crc32(batch['ids'].numpy().tobytes())} {float(loss.detach()).hex()}\n".encode()
        )
        return loss

    def on_train_end(self: LightningClassifier) -> None:
        weights = crc32(b"".join(weight.numpy().tobytes() for weight in self.state_dict().values()))
        os.write(file, f"end {weights}\nsaving {seconds[0]}\n".encode())

    def _save(self: KeepLast, *arguments: Any, **options: Any) -> None:
        start = time.perf_counter()
        save(self, *arguments, **options)
        seconds[0] += time.perf_counter() - start

    def fsync(number: int) -> None:
        time.sleep(0.02)
        write_out(number)

    replaced: list[tuple[Any, Callable]] = [(LightningClassifier, training_step), (LightningClassifier, on_train_end)]
    for owner, function in [*replaced, (KeepLast, _save), *([(os, fsync)] if slowly else [])]:
        setattr(owner, function.__name__, function)
    sys.argv = ["train.py", *arguments]
    runpy.run_path(str(ROOT / "train.py"), run_name="__main__")


def begin(log: Path, *arguments: str, how: str = "--slowly") -> subprocess.Popen:
    command = [sys.executable, "-m", "benchmarks.resume", how, str(log), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=log.parent, env=environment, stdout=subprocess.DEVNULL)


def finish(log: Path, *arguments: str, how: str = "--slowly") -> None:
    process = begin(log, *arguments, how=how)
    assert process.wait() == 0, arguments


def outcome(folder: Path, log: Path) -> tuple[Any, ...]:
    """What must be equal: steps, batches and losses; weights at the end; checkpoint; metrics. Redone steps must agree."""
    lines = [line.split(maxsplit=1) for line in log.read_text().splitlines() if not line.startswith("saving")]
    steps = {line[0]: line[1] for line in lines}
    assert all(steps[step] == said for step, said in lines), f"{log}: a step that was done again differs"
    content = torch.load(folder / "best.ckpt", weights_only=True)
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["seconds/total"]
    weights = {name: weight.numpy().tobytes() for name, weight in content["state_dict"].items()}
    return steps, weights, content["heed"], metrics


def kill(process: subprocess.Popen, folder: Path, *, after: float, writing: bool) -> bool:
    """Kill so many seconds after the first state, or once a file is being written after that; whether one was."""
    while not (folder / "last.ckpt").exists() and process.poll() is None:
        time.sleep(0.001)
    time.sleep(after)
    while writing and process.poll() is None and not list(folder.glob("*.unfinished")):
        time.sleep(0.0002)
    process.kill()
    process.wait()
    return bool(list(folder.glob("*.unfinished")))


def trial(place: Path, name: str, *, after: float, writing: bool, expected: tuple[Any, ...]) -> tuple[bool, bool]:
    """Start, kill, resume until it is finished; whether all is equal, and whether a file was being written."""
    folder, log = place / name, place / f"{name}.log"
    caught = kill(begin(log, *SMALL, f"hydra.run.dir={name}"), folder, after=after, writing=writing)
    if not is_finished(folder):
        finish(log, f"resume={name}")
    exact = outcome(folder, log) == expected
    print(f"{name}: {after:.2f} s after the first state{', writing' if caught else ''}: {exact}", flush=True)
    return exact, caught


def twenty_kills(kills: int, place: Path) -> dict[str, Any]:
    """Kill and resume so many runs; how many were exact."""
    write_texts(place / "texts.csv")
    process = begin(place / "whole.log", *SMALL, "hydra.run.dir=whole")
    while not (place / "whole" / "last.ckpt").exists() and process.poll() is None:
        time.sleep(0.001)
    start = time.perf_counter()
    assert process.wait() == 0
    life = time.perf_counter() - start
    expected = outcome(place / "whole", place / "whole.log")
    rng = random.Random(0)
    found = []
    for i in range(kills):
        after, writing = life * (i + rng.random()) / kills, i % 4 == 0
        found.append(trial(place, f"killed{i}", after=after, writing=writing, expected=expected))
    exact, writing_too = (sum(column) for column in zip(*found, strict=True))
    return {"kills": kills, "exact": exact, "while_writing": writing_too, "steps": len(expected[0]) - 1}


def share_of_saving(place: Path) -> float:
    """The share of the default run's seconds, first to last, that goes into `last.ckpt`."""
    finish(place / "default.log", "hydra.run.dir=default", "cache_dir=cache", how="--timed")
    seconds = json.loads((place / "default" / "metrics.json").read_text())["seconds/total"]
    return float((place / "default.log").read_text().split("saving ")[1]) / seconds


def main() -> None:
    if sys.argv[1:2] in (["--slowly"], ["--timed"]):
        spied(sys.argv[2], sys.argv[3:], slowly=sys.argv[1] == "--slowly")
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", nargs="?", type=int, default=20, help="(default: %(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = twenty_kills(arguments.kills, Path(folder))
        write_result("resume", figures)
        figures["share_of_saving"] = share_of_saving(Path(folder))
    write_result("resume", figures)
    print(figures)


if __name__ == "__main__":
    main()
