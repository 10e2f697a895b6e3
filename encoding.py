"""Texts → token ids: the one path that training and prediction share.

R texts in all, each of one or more pieces; N tokens in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from errors import UserError
from truncation import TRUNCATIONS, share_out

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA = {PAD: "<pad>", UNK: "<unk>", CLS: "<s>", SEP: "</s>", MASK: "<mask>"}  # what others call them
CHUNK = 1024  # texts tokenised at a time, so that Python objects never exist for all of them
CHARACTERS = 1_000_000  # of a chunk, about


class TokenIds(NamedTuple):
    """All tokens in one flat tensor: piece p is `ids[pieces[p]:pieces[p + 1]]`, text r is the pieces from `texts[r]` on."""

    ids: Tensor  # (N,) int32
    pieces: Tensor  # (all pieces + 1,) int64, where each begins in ids
    texts: Tensor  # (R + 1,) int64, where each begins in pieces
    n_tokens: Tensor  # (R,) int64, of the whole text, before anything was cut off

    @property
    def lengths(self) -> Tensor:  # (R,) what a text costs in a batch: its pieces are equally long
        return self.texts.diff() * self.pieces.diff()[self.texts[:-1]]


def encode(
    tokenizer: Tokenizer, texts: Sequence[str | Sequence[str]], *, max_len: int, truncation: str = "head"
) -> TokenIds:
    """Tokenise into `[CLS] text [SEP]`, or `[CLS] part [SEP] part [SEP]` where a text is a list of parts; RoBERTa's tokenizers
    put two separators between parts, `<s> part </s></s> part </s>` (Liu et al. 2019, arXiv:1907.11692).

    More than `max_len` tokens in all are cut as `truncation` says, the longest part first. A text without any token
    (empty, only blanks) becomes one `[UNK]`; a lone surrogate becomes "?"; a special token spelled in the text is text.
    Raises `UserError` for a text that is not a string and an unknown truncation.
    """
    if truncation not in TRUNCATIONS:
        raise UserError(f"truncation={truncation} is unknown: choose one of {', '.join(TRUNCATIONS)}")
    cut = TRUNCATIONS[truncation]
    if not tokenizer.encode_special_tokens:
        tokenizer.encode_special_tokens = True  # not while another thread encodes
    unknown, cls, sep = (special_id(tokenizer, token) for token in (UNK, CLS, SEP))
    between = separators(tokenizer)
    flat: list[np.ndarray] = [np.empty(0, np.int32)]
    piece_lengths: list[int] = []
    pieces_of_text: list[int] = []
    n_tokens: list[int] = []
    for clean in _chunks(texts):
        encodings = iter(
            tokenizer.encode_batch_fast([part for text in clean for part in text], add_special_tokens=False)
        )
        chunk: list[int] = []
        for text in clean:
            parts = [next(encodings).ids for _ in text]
            if not any(parts):
                parts[0] = [unknown]
            n_special = 2 + len(between) * (len(parts) - 1)
            shares = share_out([len(part) for part in parts], max_len - n_special)
            earlier: list[int] = []
            for part, share in zip(parts[:-1], shares, strict=False):
                earlier += (*cut(part, share)[0], *between)
            pieces = cut(parts[-1], shares[-1])
            for piece in pieces:
                chunk += [cls, *earlier, *piece, sep]
                piece_lengths.append(len(earlier) + len(piece) + 2)
            pieces_of_text.append(len(pieces))
            n_tokens.append(sum(map(len, parts)) + n_special)
        flat.append(np.array(chunk, np.int32))
    return TokenIds(
        torch.from_numpy(np.concatenate(flat)),
        _offsets(piece_lengths),
        _offsets(pieces_of_text),
        torch.tensor(n_tokens, dtype=torch.int64),
    )


def _chunks(texts: Sequence[str | Sequence[str]]) -> Iterator[list[list[str]]]:
    """Some texts at a time, each as its clean parts: at most `CHUNK`, fewer where they are long."""
    chunk: list[list[str]] = []
    characters = 0
    for row, text in enumerate(texts):
        chunk.append(_clean(text, row))
        characters += sum(map(len, chunk[-1]))
        if len(chunk) == CHUNK or characters > CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def plain(text: str | Sequence[str]) -> str:
    """One string for a text of one or several parts."""
    return text if isinstance(text, str) else " ".join(text)


def _offsets(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(dim=0)


def special_id(tokenizer: Tokenizer, token: str) -> int:
    """The number of one of `SPECIAL_TOKENS`, by its name here or RoBERTa's. Raises `UserError` when it has neither."""
    for name in (token, ROBERTA[token]):
        if (number := tokenizer.token_to_id(name)) is not None:
            return number
    raise UserError(
        f"the tokenizer lacks the token {token} (or {ROBERTA[token]}): train it with {', '.join(SPECIAL_TOKENS)}"
    )


def separators(tokenizer: Tokenizer) -> list[int]:
    """What stands between two parts of a text: one separator, and two by RoBERTa's name."""
    sep = special_id(tokenizer, SEP)
    return [sep] if tokenizer.token_to_id(SEP) == sep else [sep, sep]


def _clean(text: str | Sequence[str], row: int) -> list[str]:
    """The parts of a text, mostly one."""
    parts = [text] if isinstance(text, str) else list(text) if isinstance(text, (list, tuple)) else []
    if not parts or not all(isinstance(part, str) for part in parts):
        raise UserError(
            f"text {row + 1} is {type(text).__name__} ({text!r}), not a string: give str(text) or leave it out"
        )
    return [part.encode("utf-8", "replace").decode("utf-8") for part in parts]
