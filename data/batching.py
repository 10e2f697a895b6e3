"""Which texts share a batch: similar lengths, a budget of tokens, and an order that is a function of (seed, epoch).

R texts, B texts in a batch of P pieces (mostly P = B), T tokens of the longest, C labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from encoding import TokenIds
from errors import UserError
from padding import cut_by_budget, pad, recurring

JITTER = 0.03  # lengths are taken as up to this share longer or shorter, so that neighbours change with the epoch


class Batch(TypedDict):
    """One batch as the network takes it."""

    ids: Tensor  # (P, T)
    mask: Tensor  # (P, T), True = real token
    text: Tensor  # (P,) whose piece it is, 0 to B - 1
    labels: Tensor  # (B,), or (B, C) where a text has several


class EncodedTexts(Dataset):
    """Encoded texts and their labels `(R,)`; indexed by the rows of a whole batch, it pads them.

    With `recur`, to lengths that recur (`padding.recurring`), never beyond the longest piece.
    """

    def __init__(self, tokens: TokenIds, labels: Tensor, *, pad_id: int, recur: bool = False) -> None:
        self.tokens, self.labels, self.pad_id = tokens, labels, pad_id
        self.limit = int(tokens.pieces.diff().max()) if recur else None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: Sequence[int] | np.ndarray) -> Batch:
        padded = pad(self.tokens, rows, pad_id=self.pad_id, limit=self.limit)
        return {"ids": padded.ids, "mask": padded.mask, "text": padded.text, "labels": self.labels[rows]}


class LengthBatchSampler(Sampler):
    """Yield the rows of one batch at a time; every one of `rows` (default: all) once an epoch.

    A batch has at most `max_tokens` padded tokens, also after its length was rounded where that is to `recur`.

    Each epoch sorts the texts by a length with a little noise, cuts the row of texts at places that do not depend on the
    epoch (so every epoch has as many batches), and shuffles the batches. Without `shuffle` the order is by length.
    """

    def __init__(
        self,
        lengths: Tensor,
        *,
        max_tokens: int,
        seed: int,
        shuffle: bool,
        recur: bool = False,
        rows: np.ndarray | None = None,
    ) -> None:
        self.rows = np.arange(len(lengths)) if rows is None else rows
        self.lengths = lengths.numpy()[self.rows]
        self.seed, self.shuffle, self.epoch = seed, shuffle, 0
        self.skip = 0  # batches left out of the next epoch, which a stopped run has already read
        ascending = np.sort(self.lengths)
        # The noise moves a text by at most this factor in the ranking, so the budget holds for any epoch.
        widest = np.ceil(ascending * ((1 + JITTER) / (1 - JITTER))) if shuffle else ascending
        widest = recurring(widest) if recur else widest
        self.ends = cut_by_budget(np.minimum(widest, ascending[-1:]), max_tokens=max_tokens)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order is yielded; Lightning calls it."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[np.ndarray]:
        rng = np.random.default_rng((self.seed, self.epoch))
        noise = rng.uniform(1 - JITTER, 1 + JITTER, len(self.lengths)) if self.shuffle else 1.0
        batches = np.split(self.rows[np.argsort(self.lengths * noise, kind="stable")], self.ends[:-1])
        order = rng.permutation(len(batches)) if self.shuffle else range(len(batches))
        skip, self.skip = self.skip, 0
        yield from (batches[i] for i in order[skip:])


def balanced_rows(labels: Tensor, *, seed: int) -> np.ndarray:
    """Rows in which every class of `labels (R,)` is as frequent as the most frequent: the rarer ones repeated."""
    rng = np.random.default_rng(seed)
    of_class = [torch.nonzero(labels == label).flatten().numpy() for label in labels.unique()]
    size = max(map(len, of_class))
    whole = [np.tile(rows, size // len(rows)) for rows in of_class]
    rest = [rng.choice(rows, size % len(rows), replace=False) for rows in of_class]
    return np.concatenate(whole + rest)


def check_sampler(sampler: str | None, task: str) -> None:
    """Raise `UserError` for a sampler that is unknown or that the task does not allow."""
    if sampler not in (None, "balanced"):
        raise UserError(f"sampler={sampler} is unknown: choose null or balanced")
    if sampler is not None and task != "single_label":
        raise UserError(f"sampler=balanced needs one class a text, and the task is {task}: leave it out")
