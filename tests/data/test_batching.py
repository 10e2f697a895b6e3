import numpy as np
import pytest
import torch

from data.batching import EncodedTexts, LengthBatchSampler, balanced_rows
from encoding import TokenIds

LENGTHS = torch.from_numpy(np.random.default_rng(0).integers(3, 120, 500))


def epoch(seed: int = 0, number: int = 0, shuffle: bool = True) -> list[list[int]]:
    sampler = LengthBatchSampler(LENGTHS, max_tokens=512, seed=seed, shuffle=shuffle)
    sampler.set_epoch(number)
    batches = [batch.tolist() for batch in sampler]
    assert len(batches) == len(sampler)
    return batches


@pytest.mark.parametrize("shuffle", [True, False])
def test_every_text_is_in_exactly_one_batch_within_the_budget(shuffle):
    for number in range(5):
        batches = epoch(number=number, shuffle=shuffle)
        assert sorted(row for batch in batches for row in batch) == list(range(500))
        assert all(len(batch) * int(LENGTHS[batch].max()) <= 512 for batch in batches)


def test_the_order_is_a_function_of_seed_and_epoch():
    assert epoch(1, 3) == epoch(1, 3)
    assert epoch(1, 3) != epoch(1, 4)
    assert epoch(1, 3) != epoch(2, 3)
    assert {frozenset(batch) for batch in epoch(1, 3)} != {frozenset(batch) for batch in epoch(1, 4)}


def test_every_epoch_has_as_many_batches():
    assert len({len(epoch(number=number)) for number in range(20)}) == 1


def test_little_of_a_batch_is_padding():
    batches = epoch()
    real = sum(int(LENGTHS[batch].sum()) for batch in batches)
    padded = sum(len(batch) * int(LENGTHS[batch].max()) for batch in batches)
    assert real / padded > 0.8


def test_shapes_of_batches_recur_over_the_epochs():
    lengths = torch.from_numpy(np.random.default_rng(0).integers(3, 250, 4000))
    tokens = TokenIds(
        torch.ones(int(lengths.sum()), dtype=torch.int32),
        torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(dim=0)]),
        torch.arange(4001),
        lengths,
    )
    texts = EncodedTexts(tokens, torch.zeros(4000), pad_id=0, recur=True)
    sampler = LengthBatchSampler(lengths, max_tokens=2048, seed=0, shuffle=True, recur=True)
    shapes = set()
    for number in range(10):
        sampler.set_epoch(number)
        shapes |= {tuple(texts[rows]["ids"].shape) for rows in sampler}
    assert max(n * length for n, length in shapes) <= 2048
    assert max(length for _, length in shapes) == 249  # never beyond the longest text
    assert len(shapes) < len(sampler) / 3


def test_a_batch_holds_ids_mask_and_labels_of_its_rows():
    tokens = TokenIds(
        torch.tensor([5, 6, 7, 8, 9], dtype=torch.int32), torch.tensor([0, 2, 5]), torch.arange(3), torch.tensor([2, 3])
    )
    batch = EncodedTexts(tokens, torch.tensor([1, 0]), pad_id=0)[np.array([1, 0])]
    assert batch["ids"].tolist() == [[7, 8, 9], [5, 6, 0]]
    assert batch["mask"].tolist() == [[True, True, True], [True, True, False]]
    assert batch["labels"].tolist() == [0, 1]


def test_balanced_rows_hold_every_row_and_as_many_of_each_class():
    labels = torch.tensor([0] * 7 + [1] * 3 + [2] * 2)
    rows = balanced_rows(labels, seed=0)
    assert labels[rows].bincount().tolist() == [7, 7, 7]
    assert set(rows.tolist()) == set(range(12))
    assert np.array_equal(rows, balanced_rows(labels, seed=0))


def test_a_sampler_of_chosen_rows_yields_each_as_often_as_it_was_chosen():
    rows = np.array([0, 1, 1, 4, 4, 4])
    sampler = LengthBatchSampler(LENGTHS, max_tokens=512, seed=0, shuffle=True, rows=rows)
    assert sorted(row for batch in sampler for row in batch.tolist()) == rows.tolist()
