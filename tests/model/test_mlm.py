import pytest
import torch

from encoding import MASK, SPECIAL_TOKENS
from model.mlm import begin_with_shares, hide, tie

MASK_ID = SPECIAL_TOKENS.index(MASK)


def test_of_the_hidden_tokens_eight_tenths_are_masked_one_is_another_one_stays():
    ids = torch.full((400, 500), 7)
    may = torch.ones_like(ids, dtype=torch.bool)
    may[:, ::2] = False
    shown, places = hide(ids, may, mask_id=MASK_ID, vocab_size=1000, generator=torch.Generator().manual_seed(0))
    assert may.flatten()[places].all()
    assert len(places) / may.sum() == pytest.approx(0.15, abs=0.005)
    of_hidden = shown.flatten()[places]
    assert (of_hidden == MASK_ID).float().mean() == pytest.approx(0.8, abs=0.01)
    assert (of_hidden == 7).float().mean() == pytest.approx(0.1, abs=0.01)
    untouched = torch.ones(ids.numel(), dtype=torch.bool)
    untouched[places] = False
    assert (shown.flatten()[untouched] == 7).all()


def test_at_least_one_token_is_hidden():
    ids = torch.tensor([[2, 9, 3, 0]])
    may = torch.tensor([[False, True, False, False]])
    for seed in range(20):
        shown, places = hide(ids, may, mask_id=4, vocab_size=10, generator=torch.Generator().manual_seed(seed))
        assert places.tolist() == [1]
        assert shown[~may].tolist() == [2, 3, 0]


def test_a_tied_head_reads_tokens_off_by_their_own_vectors(network):
    classifier = network(n_classes=50)
    tie(classifier)
    assert classifier.head.weight is classifier.encoder.embedding.weight
    x = torch.randn(3, 16)
    torch.testing.assert_close(classifier.head(x), x @ classifier.encoder.embedding.weight.T + classifier.head.bias)


def test_before_training_the_guess_is_how_frequent_each_token_is():
    head = torch.nn.Linear(3, 6)
    begin_with_shares(head, torch.tensor([2, 4, 4, 3, 2, 5, 4, 3], dtype=torch.int32), never=torch.tensor([2, 3]))
    with torch.no_grad():
        head.weight.zero_()
    chances = head(torch.randn(2, 3)).softmax(dim=-1)
    expected = torch.tensor([0.5, 0.5, 0.5, 0.5, 3.5, 1.5]) / 7  # half a time for each, and those that were seen
    torch.testing.assert_close(chances, expected.expand(2, -1))
