"""A batch dealt out among processes, and a step made of several batches: what each text counts stays the same.

B texts of a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from data.batching import Batch, EncodedTexts, LengthBatchSampler, balanced_rows


class Part(NamedTuple):
    """One process's texts of a batch."""

    rows: np.ndarray  # (B,)
    share: float  # by which the mean of their losses is to be multiplied


class SharedBatch(Batch):
    """A batch and what its loss counts."""

    share: Tensor  # ()


class SharedBatches(Sampler):
    """Yield this process's part of each batch of `sampler`: every `world`th of its texts, which are sorted by length.

    So all processes have as many batches, of the same length at the same step, and one text more or less. An optimizer step
    takes a `window` of batches with n texts in all; it averages gradients over processes, and Lightning over the window's
    batches. With share = B / n · world · window its gradient is that of the mean over the n texts, also in an epoch's last,
    shorter window. A process that gets no text takes one with share 0, for it must take part in the step.
    """

    def __init__(self, sampler: LengthBatchSampler, *, rank: int, world: int, window: int) -> None:
        self.sampler, self.rank, self.world, self.window = sampler, rank, world, window

    @property
    def skip(self) -> int:
        """Batches left out of the next epoch; whole windows."""
        return self.sampler.skip

    @skip.setter
    def skip(self, batches: int) -> None:
        self.sampler.skip = batches

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order is yielded; Lightning calls it."""
        self.sampler.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[Part]:
        batches = iter(self.sampler)
        while window := list(islice(batches, self.window)):
            n_texts = sum(map(len, window))
            for rows in window:
                mine = rows[self.rank :: self.world]
                share = len(mine) / n_texts * self.world * self.window
                yield Part(mine if len(mine) else rows[:1], share)


class SharedTexts(Dataset):
    """Encoded texts, indexed by a `Part`: a batch with its `share ()`."""

    def __init__(self, texts: EncodedTexts) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, part: Part) -> SharedBatch:
        return {**self.texts[part.rows], "share": torch.tensor(part.share, dtype=torch.float32)}


def own_rows(lengths: Tensor, *, rank: int, world: int) -> np.ndarray | None:
    """The rows of validation that are process `rank`'s (None: all): every `world`th by length, each row in exactly one."""
    return None if world == 1 else np.argsort(lengths.numpy(), kind="stable")[rank::world]


def dealt(
    texts: EncodedTexts, sampler: LengthBatchSampler, *, rank: int, world: int, window: int
) -> tuple[Dataset, Sampler]:
    """Dataset and sampler of process `rank` of `world`, whose steps take `window` batches; of one batch in one: as given."""
    if world * window == 1:
        return texts, sampler
    return SharedTexts(texts), SharedBatches(sampler, rank=rank, world=world, window=window)


def chosen_rows(labels: Tensor, rows: np.ndarray | None, *, sampler: str | None, seed: int) -> np.ndarray | None:
    """The training texts of an epoch, of `rows` alone where given (None: all, once)."""
    if sampler != "balanced":
        return rows
    given = np.arange(len(labels)) if rows is None else rows
    return given[balanced_rows(labels[given], seed=seed)]
