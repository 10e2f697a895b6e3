"""Does guessing hidden words first help? From scratch against `task=mlm` on the training texts, then `model.init_from=`.

    python -m benchmarks.mlm

Test accuracy of the default recipe's network, alone and mixed with the linear model, three seeds, on the bundled articles and
the corpora beside the project. The pretraining of a seed sees the texts of train alone. About an hour on one core;
`--corpora`, `--seeds` and `--steps` make it shorter. Writes `benchmarks/results/mlm.json` after each run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.common import train, write_result
from benchmarks.corpus import configuration, source

CORPORA = ("bbc_news", "trec", "sst2", "reuters_r8")


def compare(corpus: str, *, seed: int, steps: int) -> dict[str, float]:
    """Test accuracies from scratch and after pretraining, and the loss that pretraining came to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scratch = train(folder / "scratch", *source(corpus), f"seed={seed}")
        guessed = train(folder / "mlm", *source(corpus), f"seed={seed}", "task=mlm", f"steps={steps}")
        after = train(folder / "after", *source(corpus), f"seed={seed}", f"model.init_from={folder}/mlm/best.ckpt")
    return {
        "scratch": alone(scratch),
        "pretrained": alone(after),
        "scratch_mixed": scratch["test/accuracy"],
        "pretrained_mixed": after["test/accuracy"],
        "baseline": scratch["baseline/accuracy"],
        "mlm_loss": guessed["val/loss"],
    }


def alone(metrics: dict[str, float]) -> float:
    """The network's accuracy without the linear model beside it."""
    return metrics.get("alone/accuracy", metrics["test/accuracy"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="*", default=CORPORA, choices=CORPORA)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    steps = configuration("task=mlm").steps
    parser.add_argument("--steps", type=int, default=steps, help="of pretraining (default: %(default)s)")
    arguments = parser.parse_args()
    figures: dict[str, dict[str, list[float]]] = {}
    for seed in arguments.seeds:
        for corpus in arguments.corpora:
            if corpus != "bbc_news" and not source(corpus):
                continue
            for key, value in compare(corpus, seed=seed, steps=arguments.steps).items():
                figures.setdefault(corpus, {}).setdefault(key, []).append(value)
            print(seed, corpus, {key: round(values[-1], 4) for key, values in figures[corpus].items()}, flush=True)
            write_result("mlm", {"steps": arguments.steps, "corpora": figures})
    print(
        "\n| corpus | from scratch | after guessing hidden words | mixed, from scratch | mixed, after |\n|---|---|---|---|---|"
    )
    for corpus, found in figures.items():
        keys = ("scratch", "pretrained", "scratch_mixed", "pretrained_mixed")
        print(f"| {corpus} | {' | '.join(f'{100 * statistics.mean(found[key]):.1f} %' for key in keys)} |")


if __name__ == "__main__":
    main()
