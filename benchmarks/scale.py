"""How data of any size are prepared and trained on: memory, time, and the loader's share.

    pip install -c constraints.txt -e '.[benchmarks]' && python -m benchmarks.scale

The texts are drawn, class by class, from the words of the bundled corpus. Takes about a quarter of an hour. Writes
`benchmarks/results/scale.json`.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset, disable_progress_bars
from hydra import compose, initialize_config_dir
from transformers import PreTrainedTokenizerFast

from benchmarks.common import ROOT, peak_memory, write_result
from data.sources import bbc_news
from data.tokens import encoded_on_disk
from training.assembly import make_data, make_module

SIZES = (1_000, 10_000, 100_000, 1_000_000)
EPOCHS = {1_000: 5, 10_000: 5, 100_000: 2, 1_000_000: 1}
WORDS = 16  # of a text, on average
TOKENISED = 50_000  # texts on which the two ways of tokenising are compared
REPEATS = 3
STEPS = 30  # training steps in which the loader's share is taken
SECOND_START = """
import sys, time
from hydra import compose, initialize_config_dir
from training.assembly import make_data
started = time.perf_counter()
with initialize_config_dir(sys.argv[1], version_base="1.3"):
    make_data(compose("config", overrides=sys.argv[2:]))
print(time.perf_counter() - started)
"""


def write_corpus(path: Path, n_texts: int) -> None:
    """A CSV of texts in five classes, their words as frequent as in the class's articles."""
    (rows,) = bbc_news().splits["train"]()
    words: dict[str, list[str]] = {}
    for text, label in zip(rows.columns["text"], rows.columns["label"], strict=True):
        words.setdefault(label, []).extend(re.findall(r"\w+", text))
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        file.write("text,label\n")
        for start in range(0, n_texts, 1000):
            for label in rng.choice(sorted(words), min(1000, n_texts - start)):
                chosen = rng.integers(0, len(words[label]), rng.integers(WORDS // 2, 3 * WORDS // 2 + 1))
                file.write(" ".join(words[label][i] for i in chosen) + f",{label}\n")


def overrides(folder: Path, size: int) -> list[str]:
    return ["data=files", f"data.train={folder}/{size}.csv", f"cache_dir={folder}/cache", "trainer.accelerator=cpu"]


def trained(folder: Path, size: int) -> dict[str, float]:
    """Run `python train.py` in a process of its own: its peak memory, and seconds of an epoch after the first if there are."""
    settings = [*overrides(folder, size), f"trainer.max_epochs={EPOCHS[size]}", f"hydra.run.dir={folder}/{size}"]
    started = time.perf_counter()
    log = folder / f"{size}.log"
    with log.open("w") as output:
        peak = peak_memory(subprocess.Popen([sys.executable, "train.py", *settings], cwd=ROOT, stdout=output))
    epochs = [float(seconds) for seconds in re.findall(r"^epoch .* ([\d.]+) s$", log.read_text(), re.MULTILINE)]
    return {
        "peak_mib": peak,
        "epoch_s": statistics.median(epochs[1:] or epochs),
        "run_s": time.perf_counter() - started,
    }


def second_start(folder: Path, size: int) -> float:
    """Seconds from imports to ready data, everything prepared before."""
    arguments = [sys.executable, "-c", SECOND_START, str(ROOT / "conf"), *overrides(folder, size)]
    seconds = []
    for _ in range(REPEATS):
        output = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        seconds.append(float(output.splitlines()[-1]))
    return statistics.median(seconds)


def prepare_ratio(folder: Path) -> dict[str, float]:
    """How much faster the token files are written than `datasets.map` with a fast tokenizer at its defaults does it."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        data = make_data(compose("config", overrides=overrides(folder, 100_000)))
    assert data.splits is not None
    texts = Dataset.from_dict({"text": data.splits["train"]["text"][:TOKENISED]})
    fast = PreTrainedTokenizerFast(tokenizer_object=data.tokenizer, unk_token="[UNK]", pad_token="[PAD]")
    disable_progress_bars()
    ours, theirs = [], []
    for repeat in range(REPEATS):
        start = time.perf_counter()
        cache = f"{folder}/tokens{repeat}"
        encoded_on_disk(data.tokenizer, texts["text"], key="", max_len=512, truncation="head", cache_dir=cache)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        texts.map(lambda row: fast(row["text"]), load_from_cache_file=False)
        theirs.append(time.perf_counter() - start)
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    return {"ratio": ratio, "ours_s": statistics.median(ours), "map_s": statistics.median(theirs)}


def loader_share() -> float:
    """Share of a training step of `model=small` on the bundled corpus that goes into making its batch."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("config", overrides=["model=small", "trainer.accelerator=cpu"])
    data = make_data(config)
    module = make_module(config, data)
    module.log = lambda *_, **__: None  # type: ignore[method-assign]
    optimizer, _ = module.make_optimizer(module.classifier, 10**6)
    batches = iter(data.train_dataloader())
    loading, stepping = [], []
    for _ in range(STEPS):
        start = time.perf_counter()
        batch = next(batches)
        loaded = time.perf_counter()
        optimizer.zero_grad()
        module.training_step(batch, 0).backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        loading.append(loaded - start)
        stepping.append(time.perf_counter() - loaded)
    return statistics.median(loading) / (statistics.median(loading) + statistics.median(stepping))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = {}
        for size in SIZES:
            write_corpus(folder / f"{size}.csv", size)
            runs[size] = trained(folder, size)
            print(f"{size:9,} texts: {runs[size]}", flush=True)
        prepare = prepare_ratio(folder)
        starts = {size: second_start(folder, size) for size in SIZES}
    per_text = {size: run["epoch_s"] / size for size, run in runs.items()}
    figures = {
        "memory_growth_mib": runs[SIZES[-1]]["peak_mib"] - runs[SIZES[0]]["peak_mib"],
        "epoch_linearity": per_text[1_000_000] / per_text[10_000],
        "prepare_ratio": prepare["ratio"],
        "second_start_s": starts[1_000_000],
        "loader_share": loader_share(),
        "prepare": prepare,
        "second_starts_s": starts,
        "runs": runs,
    }
    write_result("scale", figures)
    print("\n| figure | value |\n|---|---|")
    for key in ("memory_growth_mib", "epoch_linearity", "prepare_ratio", "second_start_s", "loader_share"):
        print(f"| {key} | {figures[key]:.4g} |")


if __name__ == "__main__":
    main()
