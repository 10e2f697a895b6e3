"""The main job as a newcomer runs it: `python train.py` from first start to last line, three seeds; then a cold answer.

    python -m benchmarks.main_job

Every run starts without a cached tokenizer. Writes `benchmarks/results/main_job.json`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import ROOT, write_result

SEEDS = (0, 1, 2)
COLD_ANSWERS = 7


def timed(*arguments: str) -> tuple[float, bool]:
    """Seconds of one command, and whether it wrote nothing to standard error."""
    start = time.perf_counter()
    result = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, result.stderr == ""


def main() -> None:
    runs, answers = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            run_dir = Path(folder, str(seed))
            settings = (f"seed={seed}", f"cache_dir={folder}/cache{seed}", f"hydra.run.dir={run_dir}")
            seconds, quiet = timed("train.py", *settings)
            metrics = json.loads((run_dir / "metrics.json").read_text())
            runs.append({"seed": seed, "seconds": seconds, "quiet": quiet, **metrics})
            print(f"seed {seed}: {seconds:.0f} s, accuracy {metrics['test/accuracy']:.4f}", flush=True)
        for _ in range(COLD_ANSWERS):
            answers.append(timed("predict.py", str(run_dir / "best.ckpt"), "The striker scored twice in the final."))
    figures = {
        "accuracy": statistics.mean(run["test/accuracy"] for run in runs),
        "macro_f1": statistics.mean(run["test/macro_f1"] for run in runs),
        "baseline": runs[0]["baseline/accuracy"],
        "majority": runs[0]["majority/accuracy"],
        "seconds": statistics.median(run["seconds"] for run in runs),
        "seconds_worst": max(run["seconds"] for run in runs),
        "predict_seconds": statistics.median(seconds for seconds, _ in answers),
        "quiet": all(run["quiet"] for run in runs) and all(quiet for _, quiet in answers),
        "runs": runs,
    }
    write_result("main_job", figures)
    print("\n| figure | value |\n|---|---|")
    for name, value in figures.items():
        if name != "runs":
            print(f"| {name} | {value if isinstance(value, bool) else format(value, '.4g')} |")


if __name__ == "__main__":
    main()
