"""Token ids → padded batches of similar length: the one place where a mask is made.

R texts in all; B texts in a batch of P pieces, T tokens of the longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from encoding import TokenIds


class Padded(NamedTuple):
    """What the network reads."""

    ids: Tensor  # (P, T)
    mask: Tensor  # (P, T), True = real token
    text: Tensor  # (P,) which text of the batch, 0 to B - 1, each piece belongs to


def pad(
    tokens: TokenIds, rows: Sequence[int] | np.ndarray | Tensor, *, pad_id: int, limit: int | None = None
) -> Padded:
    """Pad the pieces of the texts `rows (B,)` to the longest.

    With a `limit`, to a length that recurs, of at most so many tokens (`recurring`).
    """
    index = torch.as_tensor(rows)
    count = tokens.texts[index + 1] - tokens.texts[index]  # (B,); never work on all R texts, which may be a million
    text = torch.arange(len(index)).repeat_interleave(count)  # (P,)
    within = torch.arange(len(text)) - (count.cumsum(dim=0) - count)[text]  # (P,) 0 for a text's first piece
    piece = tokens.texts[index][text] + within  # (P,)
    start = tokens.pieces[piece]  # (P,)
    length = tokens.pieces[piece + 1] - start  # (P,)
    longest = int(length.max())
    place = torch.arange(longest if limit is None else min(limit, int(recurring(np.int64(longest)))))  # (T,)
    mask = place < length[:, None]  # (P, T)
    source = torch.where(mask, start[:, None] + place, 0)  # (P, T) places in the flat tensor
    return Padded(torch.where(mask, tokens.ids[source].long(), pad_id), mask, text)


def recurring(lengths: np.ndarray | np.int64) -> np.ndarray:
    """Round lengths in tokens up: to any up to 16, then to four an octave, 20, 24, 28, 32, 40 …

    In bf16 oneDNN makes kernels for each new shape of a batch, which takes time, and memory that is not given back.
    """
    octave = np.ceil(np.log2(lengths)).astype(int)
    step = 2 ** np.where(octave > 4, octave - 3, 0)
    return -(-lengths // step) * step


def cut_by_budget(lengths: np.ndarray, *, max_tokens: int) -> list[int]:
    """Cut ascending `lengths (R,)` into runs of at most `max_tokens` padded tokens; return the runs' ends.

    A single text longer than the budget is a run of its own.
    """
    ends, start = [], 0
    for row, length in enumerate(lengths.tolist()):
        if row > start and (row - start + 1) * length > max_tokens:
            ends.append(row)
            start = row
    return [*ends, len(lengths)] if len(lengths) else []
