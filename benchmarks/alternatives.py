"""Every alternative of the network on one corpus with otherwise equal settings: accuracy of three seeds, and speed.

    python -m benchmarks.alternatives

Trains on `../shared/datasets/trec` where present, else on the bundled corpus. The accuracy is that of the best epoch on
validation (a tenth of train; the test split is not touched); the speed, real tokens a second in training, comes from rounds
in which the alternatives take turns. Writes `benchmarks/results/alternatives.json`.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import time

import torch
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from benchmarks.common import RESULTS, ROOT, write_result
from benchmarks.validation import best_score
from training.assembly import make_data, make_module

TREC = ROOT.parent / "shared" / "datasets" / "trec"
COMMON = ["monitor=val/accuracy", "trainer.max_epochs=15", "patience=15"]
ALTERNATIVES: dict[str, list[str]] = {
    "default": [],
    **{f"attention={name}": [f"model.attention={name}"] for name in ("dot_product", "additive")},
    "bias=false": ["model.bias=false"],
    "d_value=64": ["model.d_value=64"],
    **{f"position={name}": [f"model.position={name}"] for name in ("sinusoidal", "rotary", "alibi", "none")},
    "block=post_norm": ["model.block=post_norm"],
    "norm=rms": ["model.norm=rms"],
    **{f"feed_forward={name}": [f"model.feed_forward={name}"] for name in ("relu", "geglu", "swiglu")},
    "mask=causal": ["model.mask=causal"],
    "mask=window, 4 to either side": ["model.mask=window", "model.window=4"],
    **{f"pooling={name}": [f"model.pooling={name}"] for name in ("max", "cls", "attention")},
    "max_len=10, truncation=head": ["model.max_len=10"],
    "max_len=10, truncation=head_tail": ["model.max_len=10", "truncation=head_tail"],
    "max_len=10, truncation=windows": ["model.max_len=10", "truncation=windows"],
}


def configuration(overrides: list[str], seed: int) -> DictConfig:
    source = (
        ["data=files", f"data.train={TREC / 'train.csv'}", f"data.test={TREC / 'test.csv'}"] if TREC.exists() else []
    )
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", overrides=[*source, *COMMON, *overrides, f"seed={seed}"])


def accuracy(overrides: list[str], seed: int) -> float:
    return best_score(configuration(overrides, seed))


class Stepper:
    """One alternative, ready to be timed over some training steps."""

    def __init__(self, overrides: list[str]) -> None:
        config = configuration(overrides, 0)
        data = make_data(config)
        self.module = make_module(config, data)
        self.module.log = lambda *_, **__: None  # type: ignore[method-assign]
        self.optimizer, _ = self.module.make_optimizer(self.module.classifier, 10**6)
        self.batches = list(data.train_dataloader())[:10]
        self.tokens = sum(int(batch["mask"].sum()) for batch in self.batches)

    def tokens_per_second(self) -> float:
        start = time.perf_counter()
        for batch in self.batches:
            self.module.training_step(batch, 0).backward()
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
        return self.tokens / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each alternative (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="turns in which speed is measured (default: %(default)s)")
    parser.add_argument(
        "--only", nargs="+", choices=ALTERNATIVES, metavar="NAME", help="these rows anew, the others stay"
    )
    arguments = parser.parse_args()
    logging.getLogger("heed").setLevel(logging.WARNING)
    stored = RESULTS / "alternatives.json"
    rows: dict[str, dict] = json.loads(stored.read_text())["alternatives"] if arguments.only else {}
    for name in arguments.only or ALTERNATIVES:
        overrides = ALTERNATIVES[name]
        seeds = [accuracy(overrides, seed) for seed in range(arguments.seeds)]
        rows[name] = {"accuracy": statistics.mean(seeds), "seeds": seeds}
        print(f"{name}: {rows[name]['accuracy']:.4f}", flush=True)
    steppers = {name: Stepper(overrides) for name, overrides in ALTERNATIVES.items()}
    speeds: dict[str, list[float]] = {name: [] for name in ALTERNATIVES}
    for _ in range(arguments.rounds + 1):
        for name, stepper in steppers.items():
            speeds[name].append(stepper.tokens_per_second())
    for name in ALTERNATIVES:
        rows[name]["tokens_per_second"] = statistics.median(speeds[name][1:])  # the first round warms up
    corpus = "trec" if TREC.exists() else "bbc_news"
    write_result("alternatives", {"corpus": corpus, "alternatives": rows})
    print(
        f"\n| {corpus} | validation accuracy, mean of {arguments.seeds} | lowest to highest | tokens/s |\n|---|---|---|---|"
    )
    for name in ALTERNATIVES:
        row = rows[name]
        low, high = min(row["seeds"]), max(row["seeds"])
        print(f"| {name} | {row['accuracy']:.3f} | {low:.3f} to {high:.3f} | {row['tokens_per_second']:,.0f} |")


if __name__ == "__main__":
    main()
