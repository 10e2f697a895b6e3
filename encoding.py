"""Texts → token ids → padded batches: the one path that training and prediction share.

R texts in all, N their tokens in all, B texts in a batch, T tokens of the longest of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from errors import UserError

PAD, UNK, CLS, SEP = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
CHUNK = 1024  # texts tokenised at a time, so that Python objects never exist for all of them


class TokenIds(NamedTuple):
    """All texts' tokens in one flat tensor; text r is `ids[offsets[r]:offsets[r + 1]]`."""

    ids: Tensor  # (N,) int32
    offsets: Tensor  # (R + 1,) int64
    n_truncated: int  # texts that were longer than max_len

    @property
    def lengths(self) -> Tensor:  # (R,)
        return self.offsets.diff()


def encode(tokenizer: Tokenizer, texts: Sequence[str], *, max_len: int) -> TokenIds:
    """Tokenise into `[CLS] text [SEP]`, the text's end cut off beyond `max_len` tokens in all.

    A text without any token (empty, only blanks) becomes one `[UNK]`; a lone surrogate becomes "?"; a special
    token spelled in the text is text. Raises `UserError` for a text that is not a string.
    """
    tokenizer.encode_special_tokens = True
    unknown, prefix, suffix = ([tokenizer.token_to_id(token)] for token in (UNK, CLS, SEP))
    room = max_len - len(prefix) - len(suffix)
    chunks: list[np.ndarray] = [np.empty(0, np.int32)]
    lengths: list[int] = []
    n_truncated = 0
    for start in range(0, len(texts), CHUNK):
        clean = [_clean(text, start + i) for i, text in enumerate(texts[start : start + CHUNK])]
        encodings = tokenizer.encode_batch_fast(clean, add_special_tokens=False)
        rows = [encoding.ids or unknown for encoding in encodings]
        n_truncated += sum(len(row) > room for row in rows)
        rows = [prefix + row[:room] + suffix for row in rows]
        lengths += [len(row) for row in rows]
        chunks.append(np.concatenate([np.array(row, np.int32) for row in rows]))
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    return TokenIds(torch.from_numpy(np.concatenate(chunks)), torch.from_numpy(offsets), n_truncated)


def _clean(text: str, row: int) -> str:
    if not isinstance(text, str):
        raise UserError(
            f"text {row + 1} is {type(text).__name__} ({text!r}), not a string: give str(text) or leave it out"
        )
    return text.encode("utf-8", "replace").decode("utf-8")


def pad(tokens: TokenIds, rows: Sequence[int] | np.ndarray | Tensor, *, pad_id: int) -> tuple[Tensor, Tensor]:
    """Return `ids (B, T)` and `mask (B, T)`, True = real token: the one place where a mask is made."""
    index = torch.as_tensor(rows)
    starts, lengths = tokens.offsets[index], tokens.lengths[index]  # (B,) each
    position = torch.arange(int(lengths.max()))  # (T,)
    mask = position < lengths[:, None]  # (B, T)
    source = torch.where(mask, starts[:, None] + position, 0)  # (B, T) places in the flat tensor
    return torch.where(mask, tokens.ids[source].long(), pad_id), mask


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
