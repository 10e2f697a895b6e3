"""Does a sweep leak? Memory of one process that trains twenty times, as `python train.py --multirun` does.

    python -m benchmarks.sweep_memory

Resident memory after each run of `experiment=quick` on the bundled articles, and its slope over the second half, in MiB a run.
Writes `benchmarks/results/sweep_memory.json`. Linux only.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from hydra import compose, initialize_config_dir

from benchmarks.common import ROOT, write_result
from training.run import train

RUNS = 20


def resident() -> float:
    """MiB that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="how many (default: %(default)s)")
    parser.add_argument("overrides", nargs="*", help="of the configuration")
    arguments = parser.parse_args()
    found = []
    for seed in range(arguments.runs):
        with tempfile.TemporaryDirectory() as folder, initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            overrides = ["experiment=quick", "trainer.accelerator=cpu", f"seed={seed}", *arguments.overrides]
            train(compose("config", overrides=overrides), Path(folder), started=time.perf_counter())
        gc.collect()
        found.append(resident())
        print(f"{seed}: {found[-1]:.0f} MiB", flush=True)
    half = found[len(found) // 2 :]
    slope = float(np.polyfit(range(len(half)), half, 1)[0])
    write_result("sweep_memory", {"mib_a_run": slope, "mib": found})
    print(f"slope {slope:.2f} MiB a run")


if __name__ == "__main__":
    main()
