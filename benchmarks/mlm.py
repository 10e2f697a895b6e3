"""Does guessing hidden words first help? From scratch against `task=mlm` on the training texts, then `model.init_from=`.

    python -m benchmarks.mlm

Test accuracy of `model=small`, three seeds, on the bundled articles and the corpora beside the project. The pretraining of a
seed sees the texts of train alone. Hours on two cores; `--corpora`, `--seeds` and `--steps` make it shorter. Writes
`benchmarks/results/mlm.json` after each corpus.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.common import ROOT, write_result
from benchmarks.corpus import source

CORPORA = ("bbc_news", "trec", "sst2", "reuters_r8")
MODEL = ("model=small", "model.max_len=256", "tokenizer=bpe", "optimizer.lr=5e-4")


def train(folder: Path, *overrides: str) -> dict[str, float]:
    """The metrics of one run that leaves its files in `folder`."""
    command = [sys.executable, "train.py", *MODEL, *overrides, f"hydra.run.dir={folder}"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "metrics.json").read_text())


def compare(corpus: str, *, seed: int, steps: int) -> dict[str, float]:
    """Test accuracy from scratch and after pretraining, and the loss that pretraining came to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scratch = train(folder / "scratch", *source(corpus), f"seed={seed}")
        guessed = train(
            folder / "mlm", *source(corpus), f"seed={seed}", "task=mlm", f"steps={steps}", "trainer.most_epochs=1000"
        )
        after = train(folder / "after", *source(corpus), f"seed={seed}", f"model.init_from={folder}/mlm/best.ckpt")
    return {
        "scratch": scratch["test/accuracy"],
        "pretrained": after["test/accuracy"],
        "baseline": scratch["baseline/accuracy"],
        "mlm_loss": guessed["val/loss"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="*", default=CORPORA, choices=CORPORA)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=3000, help="of pretraining (default: %(default)s)")
    arguments = parser.parse_args()
    figures: dict[str, dict[str, list[float]]] = {}
    for corpus in arguments.corpora:
        if corpus != "bbc_news" and not source(corpus):
            continue
        runs = [compare(corpus, seed=seed, steps=arguments.steps) for seed in arguments.seeds]
        figures[corpus] = {key: [run[key] for run in runs] for key in runs[0]}
        print(corpus, {key: round(statistics.mean(values), 4) for key, values in figures[corpus].items()}, flush=True)
        write_result("mlm", {"steps": arguments.steps, "corpora": figures})


if __name__ == "__main__":
    main()
