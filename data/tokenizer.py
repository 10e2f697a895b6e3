"""Train a tokenizer on the training texts, or take the one trained before on the same texts with the same settings."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from data.cache import cached, digest
from encoding import SPECIAL_TOKENS, UNK
from errors import UserError
from pretrained_files import pretrained_folder

log = logging.getLogger("heed")

KINDS = {
    "bpe": (models.BPE, trainers.BpeTrainer),  # Sennrich et al. 2016, arXiv:1508.07909
    "wordpiece": (models.WordPiece, trainers.WordPieceTrainer),  # Schuster and Nakajima 2012
    "words": (models.WordLevel, trainers.WordLevelTrainer),
}
LONGEST_WORD = 64  # characters; a longer run without a blank is cut, so that time and memory stay bounded


def train_tokenizer(
    texts: Iterable[str], *, key: str, kind: str, vocab_size: int, min_frequency: int, lowercase: bool, cache_dir: str
) -> Tokenizer:
    """Return a tokenizer of at most `vocab_size` tokens, of which `[PAD] [UNK] [CLS] [SEP] [MASK]` are the first five.

    Cached in `cache_dir` under settings, library version and `key`, which changes whenever the texts do. Raises
    `UserError` for an unknown kind or when the texts hold no word.
    """
    if kind not in KINDS:
        raise UserError(f"tokenizer.kind={kind} is unknown: choose one of {', '.join(KINDS)}")
    if vocab_size <= len(SPECIAL_TOKENS):
        raise UserError(
            f"tokenizer.vocab_size={vocab_size} leaves no room beside the {len(SPECIAL_TOKENS)} special tokens: give more"
        )

    def build(folder: Path) -> None:
        tokenizer = _train(texts, kind=kind, vocab_size=vocab_size, min_frequency=min_frequency, lowercase=lowercase)
        (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")

    name = digest(key, kind, vocab_size, min_frequency, lowercase, SPECIAL_TOKENS, version("tokenizers"))
    tokenizer, known = cached(cache_dir, f"tokenizer-{name}", build=build, read=_read)
    origin = "from the cache" if known else "trained on the training texts"
    log.info("tokenizer   %s, %s tokens, %s", kind, f"{tokenizer.get_vocab_size():,}", origin)
    return tokenizer


def load_tokenizer(
    texts: Iterable[str], *, key: str, name: str | None, package: str | None, revision: str | None
) -> Tokenizer:
    """Return the tokenizer that belongs to pretrained weights; the texts are not read.

    The arguments are those of `pretrained_files.pretrained_folder`. Raises `UserError` when it is missing or damaged.
    """
    path = pretrained_folder(name=name, package=package, revision=revision) / "tokenizer.json"
    if not path.is_file():
        raise UserError(
            f"{path.parent}: there is no tokenizer.json; save the tokenizer with save_pretrained of a fast one"
        )
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises a bare Exception
        raise UserError(f"{path}: cannot be read ({error}); download it again") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()  # what is too long is cut by model.max_len, and counted
    log.info("tokenizer   %s, %s tokens, pretrained", type(tokenizer.model).__name__, f"{tokenizer.get_vocab_size():,}")
    return tokenizer


def _train(texts: Iterable[str], *, kind: str, vocab_size: int, min_frequency: int, lowercase: bool) -> Tokenizer:
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


def _read(folder: Path) -> Tokenizer:
    return Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
