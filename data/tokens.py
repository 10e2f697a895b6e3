"""Token ids of a split in one flat file, tokenised once and read memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from data.cache import cached, digest
from encoding import TokenIds, encode

VERSION = 2  # of the files; raised when what they hold changes
ROWS = 8192  # texts tokenised between two writes


def encoded_on_disk(
    tokenizer: Tokenizer, texts: Sequence[Any], *, key: str, max_len: int, truncation: str, cache_dir: str
) -> TokenIds:
    """As `encoding.encode`, but kept in `cache_dir`; `key` changes whenever the texts do."""

    def build(folder: Path) -> None:
        lengths: list[TokenIds] = []
        with open(folder / "ids", "wb") as file:
            for start in range(0, len(texts), ROWS):
                part = encode(tokenizer, texts[start : start + ROWS], max_len=max_len, truncation=truncation)
                file.write(part.ids.numpy().data)  # not tofile: it would not say why it fails
                lengths.append(part._replace(ids=part.ids[:0]))
        pieces = torch.cat([part.pieces.diff() for part in lengths])
        counts = torch.cat([part.texts.diff() for part in lengths])
        np.savez(
            folder / "lengths", pieces=pieces, counts=counts, n_tokens=torch.cat([part.n_tokens for part in lengths])
        )

    name = digest(VERSION, key, tokenizer.to_str(), max_len, truncation)
    tokens, _ = cached(cache_dir, f"tokens-{name}", build=build, read=open_tokens)
    return tokens


def open_tokens(folder: Path) -> TokenIds:
    """Memory-map what `encoded_on_disk` wrote. Raises `ValueError` when the files do not fit together."""
    with np.load(folder / "lengths.npz") as lengths:
        pieces, counts, n_tokens = (torch.from_numpy(lengths[name]) for name in ("pieces", "counts", "n_tokens"))
    ids = torch.from_numpy(np.memmap(folder / "ids", dtype=np.int32, mode="c"))  # "c": torch warns of what is read-only
    if len(ids) != int(pieces.sum()) or len(pieces) != int(counts.sum()):
        raise ValueError(f"{folder}: incomplete")
    zero = torch.zeros(1, dtype=torch.int64)
    return TokenIds(ids, torch.cat([zero, pieces.cumsum(dim=0)]), torch.cat([zero, counts.cumsum(dim=0)]), n_tokens)
