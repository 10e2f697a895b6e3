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
import onnxruntime
import torch
from transformers import PreTrainedTokenizerFast, pipeline
from transformers.utils import logging as transformers_logging

from assembly import make_data, make_module
from benchmarks.common import write_result
from benchmarks.contestants import bert
from benchmarks.corpus import MAX_LEN, SHAPE, configuration
from encoding import encode
from model import TextClassifier
from model.task import SingleLabel
from padding import cut_by_budget, pad

ROUNDS = 3
SHORT = "shares of the bank fell after a warning on profits"
ANSWERS = 200  # of the short text, for its latency


class OnnxClassifier:
    """Our network in ONNX Runtime, with our own tokenising and batching by length around it."""

    def __init__(self, ours: TextClassifier, path: Path) -> None:
        self.ours = ours
        ids = torch.randint(4, 100, (3, 17))
        dynamic = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", max=MAX_LEN)}
        program = torch.onnx.export(
            ours.network,
            (ids, torch.ones_like(ids, dtype=torch.bool)),
            input_names=["ids", "mask"],
            dynamic_shapes=({**dynamic}, {**dynamic}),
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        program.save(str(path))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def predict(self, texts: list[str]) -> list[str]:
        tokens = encode(self.ours.tokenizer, texts, max_len=self.ours.max_len)
        lengths, order = tokens.lengths.sort(stable=True)
        logits = np.empty((len(texts), len(self.ours.labels)), np.float32)
        for rows in order.tensor_split(cut_by_budget(lengths.numpy(), max_tokens=8192)[:-1]):
            ids, mask, _ = pad(tokens, rows, pad_id=0)
            logits[rows.numpy()] = self.session.run(None, {"ids": ids.numpy(), "mask": mask.numpy()})[0]
        return [self.ours.labels[i] for i in logits.argmax(axis=1)]


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
        onnx = OnnxClassifier(ours["heed, fp32"], Path(folder) / "network.onnx")
        readers: dict[str, Callable[[], object]] = {
            "pipeline, one by one": lambda: pipe(texts, batch_size=1, truncation=True),
            "pipeline, batches of 32": lambda: pipe(texts, batch_size=32, truncation=True),
            "ONNX Runtime, our network": lambda: onnx.predict(texts),
            **{name: partial(c.predict, texts) for name, c in ours.items()},
        }
        exact = [prediction.label for prediction in ours["heed, fp32"].predict(texts)]
        same = {
            "ONNX Runtime": np.mean([a == b for a, b in zip(onnx.predict(texts), exact, strict=True)]),
            **{
                name: np.mean([a.label == b for a, b in zip(c.predict(texts), exact, strict=True)])
                for name, c in ours.items()
            },
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


def latency_ms(classifier: TextClassifier) -> float:
    """Milliseconds to answer one short text, the median of many."""
    seconds = []
    for _ in range(ANSWERS):
        start = time.perf_counter()
        classifier.predict([SHORT])
        seconds.append(time.perf_counter() - start)
    return 1000 * statistics.median(seconds)


if __name__ == "__main__":
    main()
