from collections import Counter
from functools import partial

import pytest
import torch
from torch.utils.data import DataLoader

from data import streaming
from data.batching import EncodedTexts
from data.labels import targets
from data.streaming import StreamedTexts
from data.tokenizer import train_tokenizer
from encoding import encode

LABELS = ["even", "odd"]
WORDS = [f"word{i}" for i in range(100)]
ROWS = [(" ".join([WORDS[i], *["filler"] * (i % 9)]), LABELS[i % 2]) for i in range(100)]  # each with a word of its own
HEAD = 30


@pytest.fixture
def tokenizer(tmp_path):
    return train_tokenizer(
        [*WORDS, "filler"],
        key="words",
        kind="words",
        vocab_size=200,
        min_frequency=1,
        lowercase=True,
        cache_dir=str(tmp_path),
    )


@pytest.fixture
def streamed(tokenizer, monkeypatch):
    """The rows, the first of them as the head and the rest as a stream of which `buffer` are held."""

    def build(*, buffer: int = 16, seed: int = 0, head: int = HEAD, n: int = len(ROWS)) -> StreamedTexts:
        monkeypatch.setattr(streaming, "BUFFER", buffer)
        to_ids = partial(encode, tokenizer, max_len=16)
        to_targets = partial(targets, labels=LABELS, task="single_label")
        texts, labels = zip(*ROWS[:head], strict=True)
        return StreamedTexts(
            head=EncodedTexts(to_ids(texts), to_targets(labels), pad_id=0),
            stream=lambda: iter(ROWS[head:n]),
            encode=to_ids,
            targets=to_targets,
            max_tokens=64,
            seed=seed,
        )

    return build


@pytest.fixture
def read(tokenizer):
    """The rows of one pass in their order, as text and label, decoded from the batches."""

    def rows(texts: StreamedTexts) -> list[tuple[str, str]]:
        found = []
        for batch in texts:
            assert batch["ids"].shape == batch["mask"].shape
            assert batch["ids"].numel() <= 64
            assert (batch["ids"][~batch["mask"]] == 0).all()
            for ids, mask, label in zip(batch["ids"], batch["mask"], batch["labels"], strict=True):
                text = tokenizer.decode(ids[mask].tolist(), skip_special_tokens=True)
                found.append((text, LABELS[label]))
        return found

    return rows


@pytest.mark.parametrize("buffer", [1, 16, 70, 1000])
def test_every_text_of_head_and_stream_comes_once_a_pass_with_its_label(streamed, read, buffer):
    texts = streamed(buffer=buffer)
    for _ in range(3):
        assert Counter(read(texts)) == Counter(ROWS)


def test_the_head_comes_first_and_the_stream_in_its_order_but_within_a_buffer(streamed, read):
    found = read(streamed(buffer=20))
    assert set(found[:HEAD]) == set(ROWS[:HEAD])
    for start in range(HEAD, 100, 20):
        assert set(found[start : start + 20]) == set(ROWS[start : start + 20])


def test_the_order_differs_between_passes_and_seeds_and_is_the_same_for_the_same(streamed, read):
    texts = streamed()
    first, second = read(texts), read(texts)
    for part in (slice(0, HEAD), slice(HEAD, 100)):
        assert first[part] != second[part]
    again = streamed()
    assert [read(again), read(again)] == [first, second]
    assert read(streamed(seed=1)) != first


def test_no_more_than_a_buffer_is_read_ahead(streamed, monkeypatch):
    texts = streamed(buffer=10)
    taken = []
    monkeypatch.setattr(texts, "stream", lambda: (taken.append(row) or row for row in ROWS[HEAD:]))
    n_texts = 0
    for batch in texts:
        n_texts += len(batch["labels"])
        assert len(taken) <= max(0, n_texts - HEAD) + 10


def test_a_stream_without_rows_leaves_the_head(streamed, read):
    assert Counter(read(streamed(n=HEAD))) == Counter(ROWS[:HEAD])


def test_a_data_loader_yields_the_same_batches(streamed):
    loaded = list(DataLoader(streamed(), batch_size=None))
    expected = list(streamed())
    assert len(loaded) == len(expected) > 2
    for batch, other in zip(loaded, expected, strict=True):
        assert all(torch.equal(batch[name], other[name]) for name in ("ids", "mask", "text", "labels"))
