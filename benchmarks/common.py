"""What every benchmark shares: which machine it ran on, and where its figures go."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
SHORT = "shares of the bank fell after a warning on profits"
ANSWERS = 200  # of the short text, for its latency


def machine() -> dict[str, Any]:
    """Processor, cores and versions, as far as they move a figure."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        processor = names[0] if names else processor
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "date": datetime.date.today().isoformat(),
    }


def write_result(name: str, figures: dict[str, Any]) -> None:
    """Write `figures` and the machine to `benchmarks/results/<name>.json`."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({**figures, "machine": machine()}, indent=2) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")


def train(folder: Path, *overrides: str) -> dict[str, float]:
    """The metrics of `python train.py`, whose files are left in `folder`."""
    command = [sys.executable, "train.py", *overrides, f"hydra.run.dir={folder}"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "metrics.json").read_text())


def read_result(name: str) -> dict[str, Any]:
    """The figures written before, to which a part of a benchmark adds; none where there are none."""
    path = RESULTS / f"{name}.json"
    figures = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    figures.pop("machine", None)
    return figures


def peak_memory(process: subprocess.Popen) -> float:
    """Wait for the process; MiB at its peak. The kernel's own record for a child would begin with its parent's size."""
    peak, status = 0, Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        with contextlib.suppress(OSError, IndexError):
            peak = max(peak, int(status.read_text().split("VmHWM:")[1].split()[0]))  # KiB
        time.sleep(0.05)
    assert process.returncode == 0, process.args
    return peak / 1024


def latency_ms(classifier: Any) -> float:
    """Milliseconds in which a `TextClassifier` answers one short text, the median of many."""
    seconds = []
    for _ in range(ANSWERS):
        start = time.perf_counter()
        classifier.predict([SHORT])
        seconds.append(time.perf_counter() - start)
    return 1000 * statistics.median(seconds)
