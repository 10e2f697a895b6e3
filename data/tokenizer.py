"""Train a tokenizer on the training texts, or take the one trained before on the same texts with the same settings."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from encoding import SPECIAL_TOKENS, UNK
from errors import UserError

log = logging.getLogger("heed")

KINDS = {
    "bpe": (models.BPE, trainers.BpeTrainer),  # Sennrich et al. 2016, arXiv:1508.07909
    "wordpiece": (models.WordPiece, trainers.WordPieceTrainer),  # Schuster and Nakajima 2012
    "words": (models.WordLevel, trainers.WordLevelTrainer),
}
LONGEST_WORD = 64  # characters; a longer run without a blank is cut, so that time and memory stay bounded


def train_tokenizer(
    texts: Sequence[str], *, kind: str, vocab_size: int, min_frequency: int, lowercase: bool, cache_dir: str
) -> Tokenizer:
    """Return a tokenizer of at most `vocab_size` tokens, of which `[PAD] [UNK] [CLS] [SEP]` are the first four.

    Cached in `cache_dir` under a key of texts, settings and library version. Raises `UserError` for an unknown kind or
    when the texts hold no word.
    """
    if kind not in KINDS:
        raise UserError(f"tokenizer.kind={kind} is unknown: choose one of {', '.join(KINDS)}")
    if vocab_size <= len(SPECIAL_TOKENS):
        raise UserError(
            f"tokenizer.vocab_size={vocab_size} leaves no room beside the {len(SPECIAL_TOKENS)} special tokens: give more"
        )
    key = blake2b(repr((kind, vocab_size, min_frequency, lowercase, version("tokenizers"))).encode(), digest_size=16)
    for text in texts:
        key.update(text.encode("utf-8", "replace") + b"\0")
    path = Path(cache_dir).expanduser() / f"{key.hexdigest()}.json"
    tokenizer = _read(path)
    origin = "from the cache"
    if tokenizer is None:
        tokenizer = _train(texts, kind=kind, vocab_size=vocab_size, min_frequency=min_frequency, lowercase=lowercase)
        origin = "trained on the training texts"
        _write(path, tokenizer)
    log.info("tokenizer   %s, %s tokens, %s", kind, f"{tokenizer.get_vocab_size():,}", origin)
    return tokenizer


def _train(texts: Sequence[str], *, kind: str, vocab_size: int, min_frequency: int, lowercase: bool) -> Tokenizer:
    model, trainer = KINDS[kind]
    tokenizer = Tokenizer(model(unk_token=UNK))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.FixedLength(LONGEST_WORD)]
    )
    settings = trainer(
        vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=list(SPECIAL_TOKENS), show_progress=False
    )
    tokenizer.train_from_iterator((text.encode("utf-8", "replace").decode() for text in texts), settings)
    if tokenizer.get_vocab_size() == len(SPECIAL_TOKENS):
        raise UserError("train: no text holds a word, so there is no vocabulary; check the text column (data.text)")
    return tokenizer


def _read(path: Path) -> Tokenizer | None:
    """The cached tokenizer, or None when there is none or it is damaged (it is then trained anew)."""
    try:
        return Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception:  # tokenizers raises a bare Exception for JSON it cannot read
        return None


def _write(path: Path, tokenizer: Tokenizer) -> None:
    """Write whole or not at all: a reader never meets half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(tokenizer.to_str(), encoding="utf-8")
    unfinished.replace(path)
