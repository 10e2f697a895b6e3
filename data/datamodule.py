"""Source, tokenizer and batches tied into what Lightning's trainer asks for.

R texts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from pytorch_lightning import LightningDataModule
from tokenizers import Tokenizer
from torch.utils.data import DataLoader

from data.batching import EncodedTexts, LengthBatchSampler, balanced_rows, check_sampler
from data.check import text_lines, token_lines
from data.labels import targets
from data.prepare import Prepared
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
        if self.max_len < 1 + 2 * self.n_parts:
            raise UserError(
                f"model.max_len={self.max_len} has no room for {self.n_parts} columns: give {1 + 2 * self.n_parts}"
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
        rows = balanced_rows(encoded.labels, seed=self.seed) if shuffle and self.sampler == "balanced" else None
        sampler = LengthBatchSampler(
            encoded.tokens.lengths,
            max_tokens=self.batch_tokens,
            seed=self.seed,
            shuffle=shuffle,
            recur=self.recur,
            rows=rows,
        )
        return DataLoader(encoded, sampler=sampler, batch_size=None, pin_memory=torch.cuda.is_available())

    def train_dataloader(self) -> DataLoader:
        if self.stream is None:
            return self._loader("train", shuffle=True)
        texts = StreamedTexts(
            head=self._texts("train"),
            stream=self.stream,
            encode=partial(encode, self.tokenizer, max_len=self.max_len, truncation=self.truncation),
            targets=partial(targets, labels=self.labels, task=self.task),
            max_tokens=self.batch_tokens,
            seed=self.seed,
            recur=self.recur,
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


def token_facts(encoded: dict[str, EncodedTexts], *, max_len: int, unknown: int) -> dict[str, Any]:
    """Lengths of the texts in tokens, the share that is cut, and the share of unknown tokens in each split."""
    n_tokens = torch.cat([part.tokens.n_tokens for part in encoded.values()]).numpy()
    return {
        "lengths": {f"{p} %": int(np.ceil(np.percentile(n_tokens, p))) for p in (50, 90, 99, 100)},
        "truncated": float((n_tokens > max_len).mean()),
        "unknown": {name: float((part.tokens.ids == unknown).float().mean()) for name, part in encoded.items()},
    }
