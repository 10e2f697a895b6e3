"""How speed changes with the length of the texts (64 to 2,048 tokens) and with the size of the network, in one run.

    pip install -c constraints.txt -e '.[benchmarks]' && python -m benchmarks.scaling

Tokens a second of training steps and of inference on batches of 4,096 random tokens without padding, the contestants taking
turns, median of three rounds. Writes `benchmarks/results/scaling.json`.

B batch, T tokens.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.common import write_result
from benchmarks.contestants import TorchEncoder, XTransformersEncoder, bert
from benchmarks.corpus import configuration
from model.build import build_classifier
from model.device import physical_cores

LENGTHS = (64, 128, 256, 512, 1024, 2048)
WIDTHS = (64, 128, 256, 512)  # d_model, at 256 tokens
TOKENS, VOCAB, CLASSES, LAYERS, ROUNDS = 4096, 8000, 8, 4, 3


def heed(**sizes: int) -> nn.Module:
    parts = {**configuration().model}
    for key in ("_target_", "init_from"):
        parts.pop(key)
    return build_classifier(**{**parts, **sizes, "pad_id": 0})


def forward(network: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    """Logits `(B, C)` of any contestant for `ids (B, T)`."""
    answer: Any = network(ids, attention_mask=mask) if hasattr(network, "config") else network(ids, mask)
    return answer.logits if hasattr(answer, "logits") else answer


def contestants(d_model: int, max_len: int) -> dict[str, tuple[nn.Module, Callable[[], AbstractContextManager]]]:
    """Networks of one shape, each with the context it computes in."""
    sizes = {"vocab_size": VOCAB, "n_classes": CLASSES, "max_len": max_len, "d_model": d_model, "n_layers": LAYERS}
    sizes |= {"n_heads": max(1, d_model // 64), "d_ff": 4 * d_model}
    ours = heed(**sizes)
    return {
        "heed, bf16": (ours, lambda: torch.autocast("cpu", torch.bfloat16)),
        "heed, fp32": (ours, nullcontext),
        "transformers' BERT": (bert(**sizes), nullcontext),
        "nn.TransformerEncoder": (TorchEncoder(**sizes), nullcontext),
        "x-transformers": (XTransformersEncoder(**sizes), nullcontext),
    }


def rates(d_model: int, length: int) -> dict[str, dict[str, float]]:
    """Tokens a second of each contestant, in training and in inference."""
    ids = torch.randint(4, VOCAB, (TOKENS // length, length))  # (B, T)
    mask = torch.ones_like(ids, dtype=torch.bool)  # (B, T)
    labels = torch.randint(CLASSES, (len(ids),))
    found: dict[str, dict[str, list[float]]] = {}
    networks = contestants(d_model, length)
    optimizers = {name: torch.optim.AdamW(net.parameters(), lr=1e-5, fused=True) for name, (net, _) in networks.items()}
    for turn in range(1 + ROUNDS):
        for name, (network, context) in networks.items():
            network.train()
            start = time.perf_counter()
            optimizers[name].zero_grad()
            with context():
                logits = forward(network, ids, mask)
            F.cross_entropy(logits.float(), labels).backward()
            optimizers[name].step()
            trained = time.perf_counter()
            network.eval()
            with torch.inference_mode(), context():
                forward(network, ids, mask)
            read = time.perf_counter()
            if turn > 0:  # the first is a warm-up
                of = found.setdefault(name, {"training": [], "inference": []})
                of["training"].append(ids.numel() / (trained - start))
                of["inference"].append(ids.numel() / (read - trained))
    return {name: {what: statistics.median(values) for what, values in of.items()} for name, of in found.items()}


def main() -> None:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(physical_cores())
    figures: dict[str, dict[str, dict[str, dict[str, float]]]] = {
        "tokens": {str(length): rates(256, length) for length in LENGTHS},
        "d_model": {str(width): rates(width, 256) for width in WIDTHS},
    }
    write_result("scaling", figures)
    for key, table in figures.items():
        for what in ("training", "inference"):
            print(f"\n| {what}, tokens/s by {key} | " + " | ".join(table) + " |\n|---|" + "---|" * len(table))
            for name in next(iter(table.values())):
                print(f"| {name} | " + " | ".join(f"{of[name][what]:,.0f}" for of in table.values()) + " |")


if __name__ == "__main__":
    main()
