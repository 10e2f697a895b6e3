"""Whether what is fast is as right: bf16 against fp32, dropout by bytes against torch's, batches of similar length against
random ones.

    python -m benchmarks.shortcuts

Validation accuracy of the best epoch on `trec` (the bundled articles where it is absent), three seeds. Writes
`benchmarks/results/shortcuts.json`.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from unittest import mock

import numpy as np
from torch import nn

from benchmarks.common import read_result, write_result
from benchmarks.corpus import configuration
from benchmarks.validation import best_score
from data.batching import LengthBatchSampler

SEEDS = (0, 1, 2)
COMMON = ("monitor=val/accuracy", "optimizer.lr=5e-4", "trainer.max_epochs=8", "patience=8", "model.max_len=64")


class RandomBatchSampler(LengthBatchSampler):
    """As many batches as the other, their texts in random order."""

    def __iter__(self) -> Iterator[np.ndarray]:
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.rows)
        yield from np.array_split(order, len(self))


VARIANTS = {
    "as it is: bf16, similar lengths": ("bf16-mixed", None),
    "fp32": ("32-true", None),
    "torch's dropout": ("bf16-mixed", mock.patch("model.encoder.Dropout", nn.Dropout)),
    "random batches": ("bf16-mixed", mock.patch("data.datamodule.LengthBatchSampler", RandomBatchSampler)),
}


def accuracy(precision: str, seed: int) -> float:
    return best_score(configuration(*COMMON, f"trainer.precision={precision}", f"seed={seed}", corpus="trec"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = "default: all; the figures of others stay as they were"
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS), help=what)
    chosen = parser.parse_args().variants
    found: dict[str, list[float]] = read_result("shortcuts").get("accuracy", {}) | {name: [] for name in chosen}
    for seed in SEEDS:
        for name in chosen:
            precision, patch = VARIANTS[name]
            if patch is not None:
                patch.start()
            found[name].append(accuracy(precision, seed))
            if patch is not None:
                patch.stop()
            print(f"seed {seed}, {name}: {found[name][-1]:.4f}", flush=True)
            write_result("shortcuts", {"accuracy": found})
    print("\n| | accuracy | lowest to highest |\n|---|---|---|")
    for name, values in found.items():
        print(f"| {name} | {statistics.mean(values):.3f} | {min(values):.3f} to {max(values):.3f} |")


if __name__ == "__main__":
    main()
