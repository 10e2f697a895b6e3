"""How long until the accuracy that `transformers`' Trainer ends with: the same shape, tokens and validation texts.

    pip install -c constraints.txt -e '.[benchmarks]' && python -m benchmarks.time_to_accuracy

The Trainer trains BERT from scratch for its default three epochs in batches of 32, at ten times its default rate, which from
scratch hardly learns. Ours trains `model=small` at the same peak rate. Seconds are of training alone. Some twenty minutes;
writes `benchmarks/results/time_to_accuracy.json`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from typing import Any

import numpy as np
from pytorch_lightning import Callback, Trainer
from transformers import DataCollatorWithPadding, PreTrainedTokenizerFast, TrainerCallback, TrainingArguments
from transformers import Trainer as HubTrainer
from transformers.trainer_callback import PrinterCallback
from transformers.utils import logging as transformers_logging

from benchmarks.common import RESULTS, write_result
from benchmarks.contestants import bert
from benchmarks.corpus import MAX_LEN, SHAPE, configuration
from benchmarks.training import HUB_QUIET, QUIET, as_dataset
from data.datamodule import TextDataModule
from training.assembly import make_data, make_module

BATCH_TOKENS = {"trec": 512, "reuters_r8": 4096}  # of ours, chosen on validation: some forty texts a batch
RATE = 5e-4
EPOCHS = 3
Course = list[tuple[float, float]]  # seconds of training so far and accuracy, after each epoch


class Clock:
    """Seconds of training, the validation in between left out."""

    def __init__(self) -> None:
        self.seconds, self.started = 0.0, time.perf_counter()

    def pause(self) -> None:
        self.seconds += time.perf_counter() - self.started

    def go_on(self) -> None:
        self.started = time.perf_counter()


def hub_course(data: TextDataModule) -> Course:
    network = bert(vocab_size=data.vocab_size, n_classes=len(data.labels), max_len=MAX_LEN, **SHAPE)
    clock, course = Clock(), []

    class Watch(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            clock.go_on()

        def on_epoch_end(self, *_: Any, **__: Any) -> None:
            clock.pause()

        def on_evaluate(self, *_: Any, **facts: Any) -> None:
            course.append((clock.seconds, facts["metrics"]["eval_accuracy"]))
            clock.go_on()

    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            folder,
            learning_rate=RATE,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=32,
            num_train_epochs=EPOCHS,
            eval_strategy="epoch",
            **HUB_QUIET,
        )
        trainer = HubTrainer(
            network,
            settings,
            train_dataset=as_dataset(data, "train"),
            eval_dataset=as_dataset(data, "validation"),
            data_collator=DataCollatorWithPadding(
                PreTrainedTokenizerFast(tokenizer_object=data.tokenizer, pad_token="[PAD]")
            ),
            compute_metrics=lambda answer: {"accuracy": float(np.mean(answer[0].argmax(-1) == answer[1]))},
            callbacks=[Watch()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return course


def heed_course(data: TextDataModule, corpus: str, *, epochs: int) -> Course:
    data.batch_tokens = BATCH_TOKENS[corpus]
    clock, course = Clock(), []

    class Watch(Callback):
        def on_train_epoch_start(self, *_: Any) -> None:
            clock.go_on()

        def on_validation_start(self, *_: Any) -> None:
            clock.pause()

        def on_validation_end(self, trainer: Trainer, *_: Any) -> None:
            course.append((clock.seconds, float(trainer.callback_metrics["val/accuracy"])))

    data.recur = True
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        precision="bf16-mixed",
        gradient_clip_val=1.0,
        num_sanity_val_steps=0,
        **QUIET,
        callbacks=[Watch()],
    )
    trainer.fit(make_module(configuration(f"optimizer.lr={RATE}", corpus=corpus), data), data)
    return course


def main() -> None:
    warnings.filterwarnings("ignore")
    transformers_logging.set_verbosity_error()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="*", default=list(BATCH_TOKENS), choices=list(BATCH_TOKENS))
    path = RESULTS / "time_to_accuracy.json"  # a corpus that is not run keeps its figures
    figures: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    figures = {corpus: figures[corpus] for corpus in BATCH_TOKENS if corpus in figures}
    for corpus in parser.parse_args().corpora:
        data = make_data(configuration(corpus=corpus))
        theirs = hub_course(data)
        seconds, best = max(theirs, key=lambda point: (point[1], -point[0]))
        ours = heed_course(data, corpus, epochs=2 * EPOCHS)
        reached = next((point[0] for point in ours if point[1] >= best), None)
        ratio = None if reached is None else reached / seconds
        figures[corpus] = {"ratio": ratio, "accuracy": best, "trainer": theirs, "heed": ours}
        ratios = [figure["ratio"] for figure in figures.values()]
        write_result("time_to_accuracy", {"time_to_accuracy": None if None in ratios else max(ratios), **figures})
        print(f"{corpus}: {best:.4f} after {seconds:.0f} s, ours {reached} s, ratio {ratio}", flush=True)


if __name__ == "__main__":
    main()
