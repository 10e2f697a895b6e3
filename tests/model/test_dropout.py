import pytest
import torch

from model.dropout import Dropout

torch.manual_seed(0)
X = torch.randn(64, 51, 33)  # an odd number of elements


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_drops_its_share_and_scales_the_rest_so_that_the_mean_stays(p, dtype):
    x = torch.ones_like(X, dtype=dtype)
    y = Dropout(p).train()(x)
    share = round(256 * p) / 256
    deviation = (share * (1 - share) / x.numel()) ** 0.5
    assert y.dtype == dtype
    assert float((y == 0).float().mean()) == pytest.approx(share, abs=4 * deviation)
    assert y[y != 0].float().unique().tolist() == pytest.approx([1 / (1 - share)], rel=0.005)


def test_elements_are_dropped_independently_and_differ_from_call_to_call():
    dropout = Dropout(0.5).train()
    first, second = (dropout(X) == 0).float(), (dropout(X) == 0).float()
    for a, b in (
        (first, second),
        (first[1:], first[:-1]),
        (first[:, 1:], first[:, :-1]),
        (first[..., 1:], first[..., :-1]),
    ):
        correlation = torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1]
        assert abs(float(correlation)) < 4 / a.numel() ** 0.5


def test_the_gradient_passes_what_was_kept():
    x = X.clone().requires_grad_()
    y = Dropout(0.25).train()(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, (y != 0) / 0.75)


def test_a_seed_fixes_the_draw():
    torch.manual_seed(1)
    first = Dropout(0.5).train()(X)
    torch.manual_seed(1)
    assert torch.equal(Dropout(0.5).train()(X), first)


def test_nothing_is_dropped_in_eval_mode_or_with_a_share_of_zero():
    assert Dropout(0.5).eval()(X) is X
    assert Dropout(0.0).train()(X) is X
