"""Accuracy of the default recipe from scratch, beside the linear model on the same texts, and how far its probabilities hold.

    python -m benchmarks.accuracy

Test accuracy and expected calibration error of `python train.py data=…`, three seeds, on the bundled articles and the corpora
beside the project with their own splits. Corpora that are absent are left out. Writes `benchmarks/results/accuracy.json`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import read_result, train, write_result
from benchmarks.corpus import source

SEEDS = (0, 1, 2)
CORPORA = ("bbc_news", "trec", "sst2", "reuters_r8")
KEYS = {"scratch": "test/accuracy", "ece": "test/ece", "baseline": "baseline/accuracy", "seconds": "seconds/total"}


def figures_of(corpus: str) -> dict[str, Any]:
    """The means over the seeds, and each seed's accuracy."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [train(Path(folder, str(seed)), f"seed={seed}", *source(corpus)) for seed in SEEDS]
    means = {name: statistics.mean(run[key] for run in runs) for name, key in KEYS.items()}
    return {**means, "seeds": [run["test/accuracy"] for run in runs]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="*", default=CORPORA, choices=CORPORA, help="default: all")
    figures = read_result("accuracy")
    for corpus in parser.parse_args().corpora:
        if corpus == "bbc_news" or source(corpus):
            figures[corpus] = figures_of(corpus)
            print(corpus, figures[corpus], flush=True)
            write_result("accuracy", figures)
    print("\n| corpus | from scratch | TF-IDF + linear | calibration error | time |\n|---|---|---|---|---|")
    for corpus, found in figures.items():
        shares = " | ".join(f"{100 * found[key]:.1f} %" for key in ("scratch", "baseline", "ece"))
        print(f"| {corpus} | {shares} | {found['seconds']:.0f} s |")


if __name__ == "__main__":
    main()
