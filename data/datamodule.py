"""Source, tokenizer and batches tied into what Lightning's trainer asks for.

R texts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from pytorch_lightning import LightningDataModule
from tokenizers import Tokenizer
from torch.utils.data import DataLoader

from data.batching import EncodedTexts, LengthBatchSampler, check_sampler
from data.check import text_lines, token_facts, token_lines
from data.labels import targets
from data.prepare import Prepared
from data.shares import chosen_rows, dealt, own_rows
from data.streaming import StreamedTexts
from data.tokens import encoded_on_disk
from encoding import PAD, SEP, UNK, encode, plain, special_id
from errors import UserError

log = logging.getLogger("heed")


class TextDataModule(LightningDataModule):
    """Texts and labels of three splits as batches of ids and mask; knows the facts of the data the network needs.

    `prepare()` returns the splits, `train_tokenizer(texts, key=…)` the tokenizer; `sampler` is None or "balanced".
    """

    def __init__(
        self,
        *,
        prepare: Callable[[], Prepared],
        train_tokenizer: Callable[..., Tokenizer],
        max_len: int,
        truncation: str,
        batch_tokens: int,
        sampler: str | None,
        seed: int,
        cache_dir: str,
    ) -> None:
        super().__init__()
        if batch_tokens < max_len:
            raise UserError(
                f"batch_tokens={batch_tokens} holds no text of max_len={max_len} tokens: give at least {max_len}"
            )
        self.prepare, self.train_tokenizer = prepare, train_tokenizer
        self.max_len, self.truncation, self.batch_tokens = max_len, truncation, batch_tokens
        self.sampler, self.seed, self.cache_dir = sampler, seed, cache_dir
        self.recur = False  # whether batches are padded to lengths that recur: set by who knows the precision
        self.world, self.window = 1, 1  # processes that share a batch, batches that make a step: set by who knows
        self.train_rows: np.ndarray | None = None  # of the training texts, to train on these alone
        self.splits: DatasetDict | None = None

    def setup(self, stage: str | None = None) -> None:
        """Read, tokenise and encode all splits, once, and say what was found; the tokenizer sees the training texts alone."""
        if self.splits is not None:
            return
        self.splits, self.facts, key, self.stream = self.prepare()
        self.key = key  # changes whenever the texts or labels do
        self.task, self.labels = self.facts["task"], self.facts["labels"]
        check_sampler(self.sampler, self.task)
        say(text_lines(self.facts))
        self.tokenizer = self.train_tokenizer(plain_texts(self.splits["train"]), key=key)
        self.pad_id, self.sep_id = special_id(self.tokenizer, PAD), special_id(self.tokenizer, SEP)
        self.vocab_size = self.tokenizer.get_vocab_size()
        first = self.splits["train"][0]["text"]
        self.n_parts = 1 if isinstance(first, str) else len(first)
        if self.max_len < 3 * self.n_parts:
            raise UserError(
                f"model.max_len={self.max_len} has no room for {self.n_parts} columns: give {3 * self.n_parts}"
            )
        self.encoded = {name: self._encode(name, key) for name in self.splits}
        unknown = special_id(self.tokenizer, UNK)
        self.facts |= token_facts(self.encoded, max_len=self.max_len, unknown=unknown)
        say(token_lines(self.facts, max_len=self.max_len))

    def _encode(self, name: str, key: str) -> EncodedTexts:
        assert self.splits is not None
        tokens = encoded_on_disk(
            self.tokenizer,
            self.splits[name]["text"],
            key=f"{key} {name}",
            max_len=self.max_len,
            truncation=self.truncation,
            cache_dir=self.cache_dir,
        )
        labels = targets(self.splits[name].data.column("label").to_pylist(), self.labels, self.task)
        return EncodedTexts(tokens, labels, pad_id=self.pad_id)

    def _texts(self, name: str) -> EncodedTexts:
        encoded = self.encoded[name]
        return EncodedTexts(encoded.tokens, encoded.labels, pad_id=self.pad_id, recur=self.recur)

    def _loader(self, name: str, *, shuffle: bool) -> DataLoader:
        encoded = self._texts(name)
        rank = self.trainer.global_rank if self.trainer is not None else 0
        if shuffle:
            rows = chosen_rows(encoded.labels, self.train_rows, sampler=self.sampler, seed=self.seed)
        else:
            rows = own_rows(encoded.tokens.lengths, rank=rank, world=self.world)
        sampler = LengthBatchSampler(
            encoded.tokens.lengths,
            max_tokens=self.batch_tokens * (self.world if shuffle else 1),
            seed=self.seed,
            shuffle=shuffle,
            recur=self.recur,
            rows=rows,
        )
        world, window = (self.world, self.window) if shuffle else (1, 1)
        texts, batches = dealt(encoded, sampler, rank=rank, world=world, window=window)
        return DataLoader(texts, sampler=batches, batch_size=None, pin_memory=torch.cuda.is_available())

    def train_dataloader(self) -> DataLoader:
        if self.stream is None:
            return self._loader("train", shuffle=True)
        texts = StreamedTexts(
            head=self._texts("train"),
            stream=self.stream,
            encode=partial(encode, self.tokenizer, max_len=self.max_len, truncation=self.truncation),
            targets=partial(targets, labels=self.labels, task=self.task),
            max_tokens=self.batch_tokens * self.world,
            seed=self.seed,
            recur=self.recur,
            deal=partial(dealt, rank=self.trainer.global_rank if self.trainer else 0, world=self.world, window=1),
        )
        return DataLoader(texts, batch_size=None)

    def val_dataloader(self) -> DataLoader:
        return self._loader("validation", shuffle=False)


def say(lines: Iterator[tuple[str, str]]) -> None:
    """Print lines, each with its head."""
    for head, line in lines:
        log.info("%-11s %s", head, line)


def plain_texts(table: Dataset) -> Iterator[str]:
    """One string a text, the columns of several joined by a blank."""
    for batch in table.select_columns("text").iter(1000):
        yield from map(plain, batch["text"])
