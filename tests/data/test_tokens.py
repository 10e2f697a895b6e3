import numpy as np
import pytest
import torch

from data import tokens as module
from data.tokenizer import train_tokenizer
from data.tokens import encoded_on_disk
from encoding import encode
from tests.conftest import FRUIT, TOOLS

TEXTS = [*FRUIT, "", " \n", "a saw " * 40, "漢字 🜁", "\ud83d apple", *TOOLS, "[SEP] [CLS] apple"]
PARTS = [[text, TEXTS[-row]] for row, text in enumerate(TEXTS, 1)]


def trained(tmp_path, lowercase: bool):
    return train_tokenizer(
        FRUIT + TOOLS,
        key="fruit and tools",
        kind="bpe",
        vocab_size=60,
        min_frequency=1,
        lowercase=lowercase,
        cache_dir=str(tmp_path / "tokenizers"),
    )


@pytest.fixture
def tokenizer(tmp_path):
    return trained(tmp_path, lowercase=True)


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def on_disk(tokenizer, cache):
    """Encode with the small tokenizer; keyword arguments change the settings."""

    def encoded(texts=TEXTS, **changes):
        settings = {"key": "texts", "max_len": 12, "truncation": "head", "cache_dir": str(cache)}
        return encoded_on_disk(changes.pop("tokenizer", tokenizer), texts, **{**settings, **changes})

    return encoded


@pytest.fixture
def calls(monkeypatch):
    """Which texts are tokenised from now on."""
    seen: list[int] = []
    original = module.encode
    monkeypatch.setattr(module, "encode", lambda tok, texts, **k: seen.append(len(texts)) or original(tok, texts, **k))
    return seen


def same(found, expected) -> bool:
    return all(
        torch.equal(a, b) and a.dtype == b.dtype and a.shape == b.shape for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("truncation", ["head", "head_tail", "windows"])
@pytest.mark.parametrize("texts", [TEXTS, PARTS], ids=["one column", "two columns"])
@pytest.mark.parametrize("written", [1, 7, 8192])
def test_the_ids_are_those_of_the_common_path(on_disk, tokenizer, monkeypatch, texts, truncation, written):
    monkeypatch.setattr(module, "ROWS", written)
    expected = encode(tokenizer, texts, max_len=12, truncation=truncation)
    assert same(on_disk(texts, truncation=truncation), expected)
    assert same(on_disk(texts, truncation=truncation), expected)  # now from the disk


def test_the_second_time_nothing_is_tokenised(on_disk, calls):
    first = on_disk()
    assert sum(calls) == len(TEXTS)
    assert same(on_disk(), first)
    assert sum(calls) == len(TEXTS)


@pytest.mark.parametrize("change", [{"key": "other"}, {"max_len": 13}, {"truncation": "windows"}, {"tokenizer": None}])
def test_other_texts_or_settings_are_tokenised_anew(on_disk, calls, tmp_path, change):
    on_disk()
    if "tokenizer" in change:
        change = {"tokenizer": trained(tmp_path, lowercase=False)}
    texts = TEXTS[:3] if "key" in change else TEXTS
    found = on_disk(texts, **change)
    assert calls == [len(TEXTS), len(texts)]
    assert len(found.n_tokens) == len(texts)
    on_disk()
    assert len(calls) == 2  # the first is still there


def test_the_ids_stay_on_the_disk(on_disk, monkeypatch):
    mapped = []
    memmap = np.memmap
    monkeypatch.setattr(np, "memmap", lambda *a, **k: mapped.append(memmap(*a, **k)) or mapped[-1])
    found = on_disk()
    assert found.ids.data_ptr() == mapped[-1].ctypes.data
    assert found.ids.dtype == torch.int32


def test_what_is_done_to_the_ids_does_not_change_the_file(on_disk, tokenizer):
    on_disk().ids[:] = 0
    assert same(on_disk(), encode(tokenizer, TEXTS, max_len=12))


def cut(path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def drop_a_text(path) -> None:
    with np.load(path) as lengths:
        shorter = {name: values[:-1] if name == "counts" else values for name, values in lengths.items()}
    np.savez(path, **shorter)


DAMAGE = {
    "half of the ids": lambda folder: cut(folder / "ids"),
    "part of a number": lambda folder: (folder / "ids").write_bytes((folder / "ids").read_bytes()[:-1]),
    "more ids": lambda folder: (folder / "ids").write_bytes((folder / "ids").read_bytes() * 2),
    "no ids": lambda folder: (folder / "ids").unlink(),
    "empty ids": lambda folder: (folder / "ids").write_bytes(b""),
    "half of the lengths": lambda folder: cut(folder / "lengths.npz"),
    "no lengths": lambda folder: (folder / "lengths.npz").unlink(),
    "lengths of fewer texts": lambda folder: drop_a_text(folder / "lengths.npz"),
    "other lengths": lambda folder: np.savez(folder / "lengths.npz", pieces=[1], counts=[1], n_tokens=[1]),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_built_anew(on_disk, tokenizer, cache, calls, damage):
    on_disk()
    (folder,) = cache.iterdir()
    DAMAGE[damage](folder)
    assert same(on_disk(), encode(tokenizer, TEXTS, max_len=12))
    assert same(on_disk(), encode(tokenizer, TEXTS, max_len=12))
    assert len(calls) == 2
