import pytest
import torch

from model.dropout import SharedDropout

torch.manual_seed(0)
X = torch.randn(64, 5, 100)


def test_a_text_drops_the_same_coordinates_at_all_its_tokens_and_scales_the_rest():
    y = SharedDropout(0.25).train()(X)
    kept = y != 0
    assert (kept == kept[:, :1]).all()
    torch.testing.assert_close(y[kept], X[kept] / 0.75)
    assert not (kept[0] == kept[1]).all()


def test_it_drops_its_share():
    share = float((SharedDropout(0.25).train()(X)[:, 0] == 0).float().mean())
    assert share == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / 6400) ** 0.5)


def test_nothing_is_dropped_in_eval_mode_or_with_a_share_of_zero():
    assert SharedDropout(0.5).eval()(X) is X
    assert SharedDropout(0.0).train()(X) is X
