"""Whether what is fast is as right: bf16 against fp32, dropout by bytes against torch's, batches of similar length against
random ones.

    python -m benchmarks.shortcuts

Validation accuracy of the best epoch on `trec` (the bundled articles where it is absent), three seeds. Writes
`benchmarks/results/shortcuts.json`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
from torch import nn

from assembly import make_data, make_module
from benchmarks.common import read_result, write_result
from benchmarks.corpus import configuration
from data.batching import LengthBatchSampler
from monitoring import make_keep_best
from trainer import make_trainer

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
    config = configuration(*COMMON, f"trainer.precision={precision}", f"seed={seed}", corpus="trec")
    data = make_data(config)
    with tempfile.TemporaryDirectory() as folder:
        keep_best = make_keep_best(config, data, Path(folder))
        trainer = make_trainer(config, data, keep_best, d_model=config.model.d_model, on_start=lambda: None)
        trainer.fit(make_module(config, data), data)
    assert keep_best.best_model_score is not None
    return float(keep_best.best_model_score)


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
