"""A file of a million short texts through `predict.py --input`: memory, and speed beside the same texts in a list.

    pip install -c constraints.txt -e '.[benchmarks]' && python -m benchmarks.scoring

`--texts 100000` does less. The texts are those of `benchmarks.scale`, the classifier that of `python train.py` after an epoch.
File and list take turns in one process; memory is that of processes of their own. Writes `benchmarks/results/scoring.json`.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.common import ROOT, peak_memory, train, write_result
from benchmarks.scale import write_corpus
from model import TextClassifier, load_classifier
from model.device import physical_cores
from scoring.job import Job, score

ROUNDS = 3
FIRST = 100_000  # rows from which on memory is to stay as it is


def score_file(classifier: TextClassifier, source: Path) -> None:
    """What `predict.py --input source --output …` does once the checkpoint is loaded."""
    score(classifier, Job(str(source), output=source.with_name("scored.csv"), force=True, label=""))


def peak_of(checkpoint: Path, source: Path) -> float:
    """MiB at the peak of the command."""
    options = ["--input", str(source), "--output", str(source.with_name("scored.csv")), "--force", "--label", ""]
    command = [sys.executable, "predict.py", str(checkpoint), *options]
    return peak_memory(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    n_texts, first = arguments.texts, min(FIRST, arguments.texts // 10)
    torch.set_num_threads(physical_cores())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(folder / "run", "trainer.max_epochs=1", "trainer.accelerator=cpu")
        checkpoint = folder / "run" / "best.ckpt"
        for size in (first, n_texts):
            write_corpus(folder / f"{size}.csv", size)
        peaks = {size: peak_of(checkpoint, folder / f"{size}.csv") for size in (first, n_texts)}
        print(f"peak memory in MiB: {peaks}", flush=True)
        classifier = load_classifier(checkpoint, device="cpu")
        with open(folder / f"{n_texts}.csv", encoding="utf-8", newline="") as file:
            texts = [row["text"] for row in csv.DictReader(file)]
        work = {
            "file": lambda: score_file(classifier, folder / f"{n_texts}.csv"),
            "predict": lambda: classifier.predict(texts),
            "logits": lambda: classifier.logits(texts),
        }
        classifier.predict(texts[:10_000])  # what comes first is slower
        rates: dict[str, list[float]] = {name: [] for name in work}
        for _ in range(arguments.rounds):
            for name, each in work.items():
                rates[name].append(n_texts / seconds(each))
                print(f"{name}: {rates[name][-1]:,.0f} texts/s", flush=True)
    median = {name: statistics.median(values) for name, values in rates.items()}
    figures = {
        "memory_growth_mib": peaks[n_texts] - peaks[first],
        "texts_per_s": median["file"],
        "inference_texts_per_s": median["predict"],
        "ratio": median["file"] / median["predict"],
        "ratio_logits": median["file"] / median["logits"],
        "logits_texts_per_s": median["logits"],
        "texts": n_texts,
        "peaks_mib": peaks,
        "rates": rates,
    }
    write_result("scoring", figures)
    for key in ("memory_growth_mib", "texts_per_s", "inference_texts_per_s", "ratio", "ratio_logits"):
        print(f"{key}: {figures[key]:.4g}")


if __name__ == "__main__":
    main()
