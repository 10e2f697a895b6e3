"""Source, tokenizer and batches tied into what Lightning's trainer asks for."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch
from datasets import DatasetDict
from pytorch_lightning import LightningDataModule
from tokenizers import Tokenizer
from torch.utils.data import DataLoader

from data.batching import EncodedTexts, LengthBatchSampler
from encoding import PAD, SPECIAL_TOKENS, encode
from errors import UserError

log = logging.getLogger("heed")


class TextDataModule(LightningDataModule):
    """Texts and labels of three splits as batches of ids and mask; knows the facts of the data the network needs."""

    def __init__(
        self,
        *,
        source: Callable[[], DatasetDict],
        train_tokenizer: Callable[[list[str]], Tokenizer],
        max_len: int,
        truncation: str,
        batch_tokens: int,
        seed: int,
    ) -> None:
        super().__init__()
        if batch_tokens < max_len:
            raise UserError(
                f"batch_tokens={batch_tokens} holds no text of max_len={max_len} tokens: give at least {max_len}"
            )
        self.source, self.train_tokenizer = source, train_tokenizer
        self.max_len, self.truncation, self.batch_tokens, self.seed = max_len, truncation, batch_tokens, seed
        self.splits: DatasetDict | None = None

    def setup(self, stage: str | None = None) -> None:
        """Read, tokenise and encode all splits, once; the tokenizer sees the training texts alone."""
        if self.splits is not None:
            return
        self.splits = self.source()
        self.labels = sorted(set(self.splits["train"]["label"]))
        sizes = " / ".join(f"{len(self.splits[name]):,}" for name in ("train", "validation", "test"))
        log.info("splits      %s texts (train / validation / test) in %d classes", sizes, len(self.labels))
        self.tokenizer = self.train_tokenizer(list(self.splits["train"]["text"]))
        self.pad_id = SPECIAL_TOKENS.index(PAD)
        self.vocab_size = self.tokenizer.get_vocab_size()
        self.encoded = {name: self._encode(name) for name in self.splits}

    def _encode(self, name: str) -> EncodedTexts:
        assert self.splits is not None
        tokens = encode(
            self.tokenizer, list(self.splits[name]["text"]), max_len=self.max_len, truncation=self.truncation
        )
        number = {label: i for i, label in enumerate(self.labels)}
        labels = torch.tensor([number[label] for label in self.splits[name]["label"]])
        if name == "train" and tokens.n_truncated:
            log.info(
                "max_len     %.0f %% of the training texts are cut at %d tokens",
                100 * tokens.n_truncated / len(labels),
                self.max_len,
            )
        return EncodedTexts(tokens, labels, pad_id=self.pad_id)

    def _loader(self, name: str, *, shuffle: bool) -> DataLoader:
        encoded = self.encoded[name]
        sampler = LengthBatchSampler(
            encoded.tokens.lengths, max_tokens=self.batch_tokens, seed=self.seed, shuffle=shuffle
        )
        return DataLoader(encoded, sampler=sampler, batch_size=None)

    def train_dataloader(self) -> DataLoader:
        return self._loader("train", shuffle=True)

    def val_dataloader(self) -> DataLoader:
        return self._loader("validation", shuffle=False)
