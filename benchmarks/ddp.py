"""What a second process brings: training throughput of two processes on a core each against one process on one core.

    python -m benchmarks.ddp

Real tokens a second of `model=small` with the same `batch_tokens` for each process, each pinned to its own core; the two take
turns, the figure is the median of the pairs' ratios. Needs two free cores. Writes `benchmarks/results/ddp.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, write_result

ROUNDS = 5
STEPS, WARM_UP = 60, 15  # steps in all, and of these not counted


def train_once(world: int, core: int, path: Path) -> None:
    """Train in this process, on `core` alone, as one of `world`; write its tokens and seconds to `path`."""
    os.sched_setaffinity(0, {core})  # before torch counts the cores
    from pytorch_lightning import Callback, Trainer

    from benchmarks.corpus import configuration
    from training.assembly import make_data, make_module
    from training.processes import several_processes, share_cores
    from training.trainer import quiet, settings_of

    class Meter(Callback):
        tokens, started, seconds = 0, 0.0, 0.0

        def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, number: int) -> None:
            if number == WARM_UP:
                self.started = time.perf_counter()
            self.tokens += int(batch["mask"].sum()) if number >= WARM_UP else 0

        def on_train_end(self, trainer: Any, module: Any) -> None:
            self.seconds = time.perf_counter() - self.started

    config = configuration(f"trainer={'ddp' if world > 1 else 'default'}", f"trainer.devices={world}")
    share_cores(config)
    data = make_data(config)
    module, meter = make_module(config, data), Meter()
    quiet()
    settings = settings_of(config, data, d_model=config.model.d_model)
    settings |= {"max_steps": STEPS, "max_epochs": -1, "limit_val_batches": 0, "logger": False}
    shown: dict[str, Any] = {"enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    with several_processes():
        Trainer(**settings, **shown, callbacks=[meter]).fit(module, data)
    path.write_text(json.dumps([meter.tokens, meter.seconds]))


def rate(cores: list[int]) -> float:
    """Real tokens a second of as many processes as `cores`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        running, paths = [], [Path(folder) / str(core) for core in cores]
        for rank, (core, path) in enumerate(zip(cores, paths, strict=True)):
            several = {"LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            command = [sys.executable, "-m", "benchmarks.ddp", "--one", str(len(cores)), str(core), str(path)]
            environment = os.environ | (several if len(cores) > 1 else {})
            running.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL))
        if any(process.wait() for process in running):
            raise SystemExit(f"a process of {len(cores)} failed")
        figures = [json.loads(path.read_text()) for path in paths]
    return sum(tokens for tokens, _ in figures) / max(seconds for _, seconds in figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=3, metavar=("WORLD", "CORE", "FILE"), help="train once and stop")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often both take turns (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.one:
        world, core, path = arguments.one
        train_once(int(world), int(core), Path(path))
        return
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise SystemExit("two cores are needed")
    rate(cores[:1])  # fills the cache of texts and tokens
    pairs = []
    for number in range(arguments.rounds):
        pairs.append((rate(cores[:1]), rate(cores)))
        print(f"{number}: {pairs[-1][0]:,.0f} and {pairs[-1][1]:,.0f} tokens/s", flush=True)
    figures = {
        "speedup": statistics.median(two / one for one, two in pairs),
        "speedups": [two / one for one, two in pairs],
        "tokens_a_second": {
            "one": statistics.median(p[0] for p in pairs),
            "two": statistics.median(p[1] for p in pairs),
        },
    }
    write_result("ddp", figures)
    print(f"speedup {figures['speedup']:.2f}")


if __name__ == "__main__":
    main()
