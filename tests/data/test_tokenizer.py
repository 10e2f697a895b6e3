import time

import pytest

from data import tokenizer as module
from data.tokenizer import KINDS, train_tokenizer
from encoding import SPECIAL_TOKENS, encode
from errors import UserError
from tests.conftest import FRUIT, TOOLS

SETTINGS = {"kind": "bpe", "vocab_size": 80, "min_frequency": 1, "lowercase": True}


@pytest.fixture
def train(tmp_path):
    """Train a tokenizer; the key is the texts themselves unless one is given."""

    def trained(texts, **changes):
        key = " ".join(texts) if isinstance(texts, list) else ""
        return train_tokenizer(texts, **{**SETTINGS, "key": key, "cache_dir": str(tmp_path), **changes})

    return trained


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_come_first_and_the_vocabulary_keeps_its_size(train, kind):
    tokenizer = train(FRUIT + TOOLS, kind=kind, vocab_size=60)
    assert [tokenizer.id_to_token(i) for i in range(5)] == list(SPECIAL_TOKENS)
    assert 5 < tokenizer.get_vocab_size() <= 60


@pytest.mark.parametrize("kind", KINDS)
def test_known_words_are_found_again_and_unseen_writing_is_unknown(train, kind):
    tokenizer = train(["apple pear", "apple"], kind=kind)
    assert tokenizer.encode("pear", add_special_tokens=False).tokens == ["pear"]
    assert set(tokenizer.encode("漢 🜁", add_special_tokens=False).tokens) == {"[UNK]"}


def test_lowercasing_is_an_option(train):
    assert train(["Apple apple"], kind="words").get_vocab_size() == 6
    assert train(["Apple apple"], kind="words", lowercase=False).get_vocab_size() == 7


def test_the_second_run_does_not_train_again(train, monkeypatch):
    first = train(FRUIT)
    monkeypatch.setattr(module, "_train", None)
    assert train(FRUIT).to_str() == first.to_str()


def test_the_second_run_does_not_read_the_texts(train):
    first = train(iter(FRUIT), key="fruit")
    unread = iter(FRUIT)
    assert train(unread, key="fruit").to_str() == first.to_str()
    assert list(unread) == FRUIT


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "words"},
        {"vocab_size": 60},
        {"min_frequency": 2},
        {"lowercase": False},
        {"key": "other"},
        {"texts": TOOLS},
    ],
)
def test_other_texts_or_settings_train_anew(train, monkeypatch, changes):
    train(FRUIT)
    calls = []
    original = module._train
    monkeypatch.setattr(module, "_train", lambda *a, **k: calls.append(1) or original(*a, **k))
    train(changes.get("texts", FRUIT), **{k: v for k, v in changes.items() if k != "texts"})
    assert calls == [1]


def test_another_version_of_the_library_trains_anew(train, monkeypatch):
    train(FRUIT)
    monkeypatch.setattr(module, "version", lambda name: "0.0.0")
    monkeypatch.setattr(module, "_train", None)
    with pytest.raises(TypeError, match="not callable"):
        train(FRUIT)


@pytest.mark.parametrize("content", ["", "{}", '{"version": "1.0", "trunc', None], ids=["empty", "{}", "half", "none"])
def test_a_damaged_cache_is_replaced(train, tmp_path, content):
    expected = train(FRUIT).to_str()
    (cached,) = tmp_path.glob("tokenizer-*/*.json")
    if content is None:
        cached.unlink()
    else:
        cached.write_text(content, encoding="utf-8")
    assert train(FRUIT).to_str() == expected == cached.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.glob("tokenizer-*/*")] == ["tokenizer.json"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_without_end_takes_bounded_time(train, kind):
    tokenizer = train(FRUIT, kind=kind)
    start = time.perf_counter()
    assert encode(tokenizer, ["x" * 5_000_000], max_len=100).lengths.tolist() == [100]
    assert time.perf_counter() - start < 60  # not a speed: quadratic time would take hours


def test_texts_without_a_word_and_wrong_settings_are_refused(train, tmp_path):
    with pytest.raises(UserError, match=r"no text holds a word.*data\.text"):
        train(["", "  "])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match=r"tokenizer\.kind=unigram .*bpe, wordpiece, words"):
        train(FRUIT, kind="unigram")
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size=4 "):
        train(FRUIT, vocab_size=4)
