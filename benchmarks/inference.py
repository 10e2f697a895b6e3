"""Inference on the 2,189 test texts of `reuters_r8`: against `transformers.pipeline` and ONNX Runtime, in one run.

    pip install -c constraints.txt -e '.[benchmarks]' && python -m benchmarks.inference

ONNX Runtime runs our own network, exported; the pipeline a BERT of the same shape. All read strings and answer
labels. Median of rounds in which they take turns. Writes `benchmarks/results/inference.json`.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast, pipeline
from transformers.utils import logging as transformers_logging

from benchmarks.common import latency_ms, write_result
from benchmarks.contestants import bert
from benchmarks.corpus import MAX_LEN, SHAPE, configuration
from model import TextClassifier
from model.exported import in_place_of, run_onnx
from model.program import to_onnx
from model.task import SingleLabel
from training.assembly import make_data, make_module

ROUNDS = 3


def main() -> None:
    warnings.filterwarnings("ignore")
    transformers_logging.set_verbosity_error()
    config = configuration()
    data = make_data(config)
    network = make_module(config, data).classifier
    torch.nn.init.normal_(network.head.weight)  # zero before training: all logits would be equal
    task = SingleLabel(labels=data.labels)
    assert data.splits is not None
    texts = list(data.splits["test"]["text"])
    ours = {
        name: TextClassifier(network, task=task, tokenizer=data.tokenizer, precision=precision)
        for name, precision in (("heed, fp32", "32-true"), ("heed, bf16", "bf16-mixed"), ("heed, int8", "int8"))
    }
    hub = bert(vocab_size=data.vocab_size, n_classes=len(data.labels), max_len=MAX_LEN, **SHAPE).eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=data.tokenizer, pad_token="[PAD]", model_max_length=MAX_LEN)
    pipe = cast(Any, pipeline)("text-classification", model=hub, tokenizer=tokenizer, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        to_onnx(network, Path(folder) / "network.onnx")
        onnx = in_place_of(ours["heed, fp32"], run_onnx(Path(folder) / "network.onnx", network))
        readers: dict[str, Callable[[], object]] = {
            "pipeline, one by one": lambda: pipe(texts, batch_size=1, truncation=True),
            "pipeline, batches of 32": lambda: pipe(texts, batch_size=32, truncation=True),
            "ONNX Runtime, our network": lambda: onnx.predict(texts),
            **{name: partial(c.predict, texts) for name, c in ours.items()},
        }
        exact = [prediction.label for prediction in ours["heed, fp32"].predict(texts)]
        answering = {"ONNX Runtime": onnx, **ours}
        same = {
            name: np.mean([a.label == b for a, b in zip(c.predict(texts), exact, strict=True)])
            for name, c in answering.items()
        }
        found: dict[str, list[float]] = {name: [] for name in readers}
        for _ in range(ROUNDS):
            for name, read in readers.items():
                start = time.perf_counter()
                read()
                found[name].append(len(texts) / (time.perf_counter() - start))
                print(f"{name}: {found[name][-1]:,.0f} texts/s", flush=True)
    rates = {name: statistics.median(values) for name, values in found.items()}
    latency = {name: latency_ms(classifier) for name, classifier in ours.items()}
    best = max(rates[name] for name in ours)
    figures = {
        "ratio_pipeline": best / max(rates["pipeline, one by one"], rates["pipeline, batches of 32"]),
        "ratio_onnx": best / rates["ONNX Runtime, our network"],
        "ratio_onnx_fp32": rates["heed, fp32"] / rates["ONNX Runtime, our network"],
        "latency_ms": min(latency.values()),
        "latency_default_ms": latency["heed, bf16"],  # auto: bf16 from a batch of 256 tokens on
        "same_labels_as_fp32": {name: float(share) for name, share in same.items()},
        "texts_a_second": rates,
        "latencies_ms": latency,
    }
    write_result("inference", figures)
    print("\n| reader | texts/s |\n|---|---|")
    for name, rate in rates.items():
        print(f"| {name} | {rate:,.0f} |")
    for key in list(figures)[:5]:
        print(f"{key}: {figures[key]:.3g}")


if __name__ == "__main__":
    main()
