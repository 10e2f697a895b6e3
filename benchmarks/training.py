"""Training throughput, against `transformers`' Trainer, `nn.TransformerEncoder` and `x-transformers`, in one run.

    pip install -c constraints.txt -e '.[benchmarks]' && python -m benchmarks.training

Real tokens a second of whole training loops on the same token ids, the contestants taking turns, each time in a process
of its own; its peak memory; the share of the matrix-product ceiling measured just before. Takes about a quarter of an
hour. Writes `benchmarks/results/training.json`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from pytorch_lightning import Trainer
from torch import nn
from transformers import DataCollatorWithPadding, PreTrainedTokenizerFast, TrainingArguments
from transformers import Trainer as HubTrainer
from transformers.trainer_callback import PrinterCallback
from transformers.utils import logging as transformers_logging

from benchmarks.common import ROOT, peak_memory, write_result
from benchmarks.contestants import Meter, TorchEncoder, XTransformersEncoder, bert, plain_loop, random_batches
from benchmarks.corpus import MAX_LEN, SHAPE, configuration
from data.datamodule import TextDataModule
from model.device import physical_cores
from training.assembly import make_data, make_module
from training.trainer import quiet

ROUNDS = 3
WARM_UP = 3  # steps not counted
STEPS = {"heed": 128, "others": 13}  # ours: an epoch of `reuters_r8`, in which the kernels for each shape are made
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
LIGHTNING = {"fp32": "32-true", "bf16": "bf16-mixed"}
QUIET: dict[str, Any] = {  # of Lightning's Trainer
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}
HUB_QUIET: dict[str, Any] = {  # of the other
    "report_to": [],
    "save_strategy": "no",
    "disable_tqdm": True,
    "use_cpu": True,
    "dataloader_pin_memory": False,
}
WIDER = {512: 8, 768: 12}  # d_model → n_heads of the larger encoders whose share of the ceiling is taken


def heed(data: TextDataModule, *, precision: str, steps: int = STEPS["heed"], overrides: tuple[str, ...] = ()) -> Meter:
    """Our module in Lightning's trainer, batches and all as `python train.py` makes them."""
    module = make_module(configuration(*overrides), data)
    meter = Meter(module.classifier)
    data.recur = precision == "bf16-mixed"
    trainer = Trainer(
        accelerator="cpu",
        max_steps=steps,
        precision=precision,  # type: ignore[arg-type]
        gradient_clip_val=1.0,
        limit_val_batches=0,
        **QUIET,
    )
    trainer.fit(module, train_dataloaders=data.train_dataloader())
    return meter


def hub_trainer(data: TextDataModule, *, seed: int, network: nn.Module | None = None, **arguments: Any) -> Meter:
    """`transformers`' Trainer with BERT of our shape or another network, fp32 and random order unless told otherwise."""
    network = network or bert(vocab_size=data.vocab_size, n_classes=len(data.labels), max_len=MAX_LEN, **SHAPE)
    meter = Meter(network)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=data.tokenizer, pad_token="[PAD]")
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            folder,
            max_steps=STEPS["others"],
            seed=seed,
            **HUB_QUIET,
            **arguments,
        )
        trainer = HubTrainer(
            network,
            settings,
            train_dataset=as_dataset(data, "train"),
            data_collator=DataCollatorWithPadding(tokenizer),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return meter


def as_dataset(data: TextDataModule, split: str) -> list[dict[str, Any]]:
    """A split's ids as `transformers` takes them."""
    tokens, labels = data.encoded[split].tokens, data.encoded[split].labels.tolist()
    ends = tokens.pieces.tolist()
    ids = tokens.ids.tolist()
    rows = []
    for start, end, label in zip(ends[:-1], ends[1:], labels, strict=True):
        rows.append({"input_ids": ids[start:end], "attention_mask": [1] * (end - start), "labels": label})
    return rows


def plain(data: TextDataModule, network: Callable[..., nn.Module], *, seed: int) -> Meter:
    encoder = network(vocab_size=data.vocab_size, n_classes=len(data.labels), max_len=MAX_LEN, **SHAPE)
    meter = Meter(encoder)
    plain_loop(encoder, random_batches(data.encoded["train"], size=32, seed=seed), steps=STEPS["others"])
    return meter


def contestants(data: TextDataModule) -> dict[str, Callable[[int], Meter]]:
    """Each trains for some steps with a seed; the first is what the ratios are taken over."""
    by_length: dict[str, Any] = {"train_sampling_strategy": "group_by_length"}
    runs: dict[str, Callable[[int], Meter]] = {
        "Trainer, batches of 32": lambda seed: hub_trainer(data, seed=seed, per_device_train_batch_size=32),
        "Trainer, its default of 8": lambda seed: hub_trainer(data, seed=seed),
        "Trainer, 32 of similar length": lambda seed: hub_trainer(
            data, seed=seed, per_device_train_batch_size=32, **by_length
        ),
        "nn.TransformerEncoder, plain loop": lambda seed: plain(data, TorchEncoder, seed=seed),
        "x-transformers, plain loop": lambda seed: plain(data, XTransformersEncoder, seed=seed),
        "heed, fp32": lambda seed: heed(data, precision="32-true"),
        "heed, bf16": lambda seed: heed(data, precision="bf16-mixed"),
    }
    for d_model, n_heads in WIDER.items():
        sizes = (f"model.d_model={d_model}", f"model.n_heads={n_heads}", f"model.d_ff={4 * d_model}")
        for name, precision in LIGHTNING.items():
            runs[wider(name, d_model)] = lambda seed, precision=precision, sizes=sizes: heed(  # type: ignore[misc]
                data, precision=precision, steps=33, overrides=sizes
            )
    return runs


def wider(name: str, d_model: int) -> str:
    """The contestant of another width."""
    return f"heed, {name}" if d_model == SHAPE["d_model"] else f"heed, {name}, d_model {d_model}"


def ceiling(dtype: torch.dtype, *, size: int = 2048, repeats: int = 12) -> float:
    """Floating-point operations a second of large matrix products, the median of some."""
    a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        a @ b
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / statistics.median(seconds[2:])


def operations_a_token(data: TextDataModule, *, d_model: int, n_layers: int, d_ff: int) -> float:
    """Of the matrix products of a training step: six a weight of the blocks, twelve a pair of tokens and coordinate."""
    weights = n_layers * (4 * d_model**2 + 2 * d_model * d_ff)
    lengths = data.encoded["train"].tokens.lengths.double()
    seen = float((lengths**2).sum() / lengths.sum())  # tokens that a token sees, on average
    return 6 * weights + 12 * n_layers * d_model * seen


def train_one(name: str, *, seed: int) -> None:
    """Train one contestant; print its rate, its share of real tokens, and for ours the share of the ceiling, as JSON."""
    quiet()
    warnings.filterwarnings("ignore")
    transformers_logging.set_verbosity_error()
    torch.set_num_threads(physical_cores())
    data = make_data(configuration())
    precision = next((precision for precision in DTYPES if precision in name), None)
    top = ceiling(DTYPES[precision]) if precision else math.nan
    meter = contestants(data)[name](seed)
    d_model = int(name.split()[-1]) if "d_model" in name else SHAPE["d_model"]
    operations = operations_a_token(data, d_model=d_model, n_layers=SHAPE["n_layers"], d_ff=4 * d_model)
    rate = meter.rate(warm_up=WARM_UP)
    print(json.dumps({"rate": rate, "real": meter.real_share(), "top": top, "share": rate * operations / top}))


def measure(name: str, *, seed: int) -> dict[str, float]:
    """What `train_one` prints, from a process of its own, and that process's peak in MiB."""
    command = [sys.executable, "-m", "benchmarks.training", "--one", name, "--seed", str(seed)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    peak = peak_memory(process)
    assert process.stdout is not None
    figures = {**json.loads(process.stdout.read().splitlines()[-1]), "peak": peak}
    print(f"{seed} {name}: {figures['rate']:,.0f} tokens/s", flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", help="train this contestant once and print its figures")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.one:
        train_one(arguments.one, seed=arguments.seed)
        return
    names = list(contestants(make_data(configuration())))
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for seed in range(ROUNDS):
        for name in names:
            if seed == 0 or "d_model" not in name:
                found[name].append(measure(name, seed=seed))
    medians = {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]} for name, runs in found.items()
    }
    rates, real, memory = (
        {name: figures[key] for name, figures in medians.items()} for key in ("rate", "real", "peak")
    )
    base = rates["Trainer, batches of 32"]
    of_ceiling = {
        name: {str(d_model): medians[wider(name, d_model)]["share"] for d_model in (SHAPE["d_model"], *WIDER)}
        for name in DTYPES
    }
    figures = {
        "ratio_bf16": rates["heed, bf16"] / base,
        "ratio_fp32": rates["heed, fp32"] / base,
        "ratio_bf16_batches_of_8": rates["heed, bf16"] / rates["Trainer, its default of 8"],
        "ratio_fp32_batches_of_8": rates["heed, fp32"] / rates["Trainer, its default of 8"],
        "ceiling_share_fp32": of_ceiling["fp32"]["256"],
        "ceiling_share_bf16": of_ceiling["bf16"]["256"],
        "memory_ratio": memory["heed, bf16"] / memory["Trainer, batches of 32"],
        "tokens_a_second": rates,
        "real_share": real,
        "ceiling_gflops": {name: medians[f"heed, {name}"]["top"] / 1e9 for name in DTYPES},
        "ceiling_shares": of_ceiling,
        "peak_mib": memory,
    }
    write_result("training", figures)
    print("\n| loop | tokens/s | of padded tokens real | times the Trainer |\n|---|---|---|---|")
    for name, rate in rates.items():
        print(f"| {name} | {rate:,.0f} | {100 * real[name]:.0f} % | {rate / base:.1f} |")
    for key in list(figures)[:7]:
        print(f"{key}: {figures[key]:.3f}")


if __name__ == "__main__":
    main()
