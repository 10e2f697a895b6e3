import numpy as np
import pytest
import torch

from data.batching import LengthBatchSampler
from data.shares import SharedBatches, chosen_rows, own_rows

LENGTHS = torch.from_numpy(np.random.default_rng(0).integers(3, 120, 501))


def parts(world: int, window: int = 1, tokens: int = 512) -> list[list]:
    """Each process's parts of an epoch."""
    found = []
    for rank in range(world):
        sampler = LengthBatchSampler(LENGTHS, max_tokens=tokens, seed=0, shuffle=True)
        shared = SharedBatches(sampler, rank=rank, world=world, window=window)
        shared.set_epoch(3)
        found.append(list(shared))
        assert len(found[-1]) == len(shared)
    return found


@pytest.mark.parametrize("world", [2, 3])
def test_processes_share_the_batches_of_one_text_by_text(world):
    sampler = LengthBatchSampler(LENGTHS, max_tokens=512, seed=0, shuffle=True)
    sampler.set_epoch(3)
    for whole, *dealt in zip(sampler, *parts(world), strict=True):
        rows = [row for part in dealt if part.share for row in part.rows.tolist()]
        assert sorted(rows) == sorted(whole.tolist())
        sizes = [len(part.rows) for part in dealt]
        assert max(sizes) - min(sizes) <= 1
        longest = [int(LENGTHS[part.rows].max()) for part in dealt]
        assert len(whole) < 2 * world or max(longest) - min(longest) <= 0.1 * max(longest) + 3


@pytest.mark.parametrize(("world", "window"), [(1, 4), (2, 1), (3, 4), (40, 3)])
def test_every_text_counts_alike_in_a_step(world, window):
    """Averaged over processes and the window's batches, as DDP and Lightning do, losses give the mean over the step's texts."""
    loss = torch.rand(len(LENGTHS), dtype=torch.float64).numpy()
    dealt = parts(world, window)
    n_batches = len(dealt[0])
    assert n_batches % window or window == 1  # the last step is shorter
    for start in range(0, n_batches, window):
        step = [part for of_rank in dealt for part in of_rank[start : start + window]]
        averaged = sum(part.share * loss[part.rows].mean() for part in step) / (world * window)
        rows = np.concatenate([part.rows for part in step if part.share])
        assert averaged == pytest.approx(loss[rows].mean())


def test_a_process_without_a_text_takes_one_that_does_not_count():
    dealt = parts(40)
    idle = [part for of_rank in dealt for part in of_rank if part.share == 0]
    assert idle
    assert all(len(part.rows) == 1 for part in idle)


def test_each_row_of_validation_is_one_processes():
    rows = [own_rows(LENGTHS, rank=rank, world=3) for rank in range(3)]
    assert sorted(np.concatenate(rows).tolist()) == list(range(501))
    assert own_rows(LENGTHS, rank=0, world=1) is None


def test_rows_of_an_epoch_may_be_some_and_balanced():
    labels = torch.tensor([0, 0, 0, 1, 1, 0])
    some = np.array([0, 1, 3, 5])
    assert chosen_rows(labels, None, sampler=None, seed=0) is None
    assert chosen_rows(labels, some, sampler=None, seed=0) is some
    assert sorted(chosen_rows(labels, some, sampler="balanced", seed=0).tolist()) == [0, 1, 3, 3, 3, 5]
