"""Exported to ONNX: how far its logits are from ours, whatever the network's parts; what int8 costs and saves.

    pip install -c constraints.txt -e '.[export]' && python -m benchmarks.export

A `model=small` trained on `reuters_r8` (the bundled articles where it is absent) answers its test texts here, in ONNX Runtime,
and there in int8; every alternative of the network is exported with random weights and asked random batches. Writes
`benchmarks/results/export.json`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import latency_ms, train, write_result
from benchmarks.corpus import MAX_LEN, configuration, source
from evaluation.metrics import SCORES
from evaluation.parity import largest_difference, random_batches
from model import build_classifier, load_classifier
from model.build import TABLES
from model.exported import in_place_of, onnx_in_int8, run_onnx
from model.program import to_onnx
from training.assembly import make_data

SIZES: dict[str, Any] = {
    **{"vocab_size": 1000, "n_classes": 5, "pad_id": 0, "d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 256},
    **{"max_len": 512, "dropout": 0.0, "attention": "scaled_dot_product", "position": "learned", "mask": "padding"},
    **{"block": "pre_norm", "norm": "layer", "feed_forward": "gelu", "pooling": "mean"},
}
EACH: dict[str, dict[str, Any]] = {
    f"{key}={name}": {key: name} for key in TABLES for name in TABLES[key] if name != SIZES[key]
}
KINDS: dict[str, dict[str, Any]] = {
    "BERT": {"block": "post_norm", "embedding_norm": True, "pooling": "cls", "n_segments": 2, "sep_id": 3},
    "ModernBERT": {
        **{
            "position": "rotary",
            "embedding_norm": True,
            "mask": "window",
            "window": 64,
            "global_every": 2,
            "bias": False,
        },
        **{"rotary_bases": [160_000.0, 10_000.0], "feed_forward": "geglu", "pooling": "cls"},
    },
}


def of_each_alternative(folder: Path) -> dict[str, float]:
    """The largest difference of logits for each alternative, with random weights."""
    found = {}
    for name, parts in {"default": {}, **EACH, **KINDS}.items():
        torch.manual_seed(0)
        network = build_classifier(**{**SIZES, **({"window": 8} if name == "mask=window" else {}), **parts}).eval()
        torch.nn.init.normal_(network.head.weight)  # zero before training: all logits would be equal
        to_onnx(network, folder / "alternative.onnx")
        run, largest = run_onnx(folder / "alternative.onnx", network), 0.0
        with torch.inference_mode():
            for ids, mask in random_batches(network.architecture):
                largest = max(largest, float((network(ids, mask) - run(ids, mask)).abs().max()))
        found[name] = largest
        print(f"{name}: {largest:.1e}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5, help="of training (default: %(default)s)")
    parser.add_argument("--model", default="small", help="of conf/model/ (default: %(default)s)")
    arguments = parser.parse_args()
    overrides = [f"model={arguments.model}", "tokenizer=bpe", f"trainer.max_epochs={arguments.epochs}"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = source("reuters_r8") or ["data=bbc_news"]
        train(folder / "run", *corpus, f"model.max_len={MAX_LEN}", "trainer.accelerator=cpu", *overrides)
        ours = load_classifier(folder / "run" / "best.ckpt", precision="32-true", device="cpu")
        data = make_data(configuration(*overrides))
        assert data.splits is not None
        texts, truth = list(data.splits["test"]["text"]), list(data.splits["test"]["label"])
        path = folder / "model.onnx"
        to_onnx(ours.network, path)
        answering = {"heed, fp32": ours, "ONNX Runtime, fp32": in_place_of(ours, run_onnx(path, ours.network))}
        sizes = {"checkpoint": (folder / "run" / "best.ckpt").stat().st_size, "fp32": path.stat().st_size}
        random = largest_difference(ours, run_onnx(path, ours.network))
        onnx_in_int8(path)
        answering["ONNX Runtime, int8"] = in_place_of(ours, run_onnx(path, ours.network))
        sizes["int8"] = path.stat().st_size
        logits = {name: classifier.logits(texts) for name, classifier in answering.items()}
        differences = {name: float((logits["heed, fp32"] - found).abs().max()) for name, found in logits.items()}
        said = {name: [ours.labels[i] for i in found.argmax(dim=1)] for name, found in logits.items()}
        latencies = {name: latency_ms(classifier) for name, classifier in answering.items()}
        each = of_each_alternative(folder)
    figures = {
        "onnx_max_abs_diff": max(random, differences["ONNX Runtime, fp32"], *each.values()),
        "differences_on_test_texts": differences,
        "differences_of_alternatives": each,
        "accuracy": {name: SCORES["single_label"](truth, answers)["accuracy"] for name, answers in said.items()},
        "n_texts": len(texts),
        "megabytes": {name: size / 1e6 for name, size in sizes.items()},
        "latencies_ms": latencies,
    }
    write_result("export", figures)
    for key in ("onnx_max_abs_diff", "accuracy", "megabytes", "latencies_ms"):
        print(f"{key}: {figures[key]}")


if __name__ == "__main__":
    main()
