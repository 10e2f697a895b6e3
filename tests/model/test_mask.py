import pytest
import torch

from errors import UserError
from model.mask import CausalMask, PaddingMask, WindowMask

MASK = torch.tensor([[True, True, True, True, False]])


def picture(visible: torch.Tensor) -> list[str]:
    return ["".join("x" if seen else "." for seen in row) for row in visible.expand(-1, -1, 5, -1)[0, 0]]


def test_padding_is_seen_by_nobody():
    assert picture(PaddingMask()(MASK)) == ["xxxx."] * 5


def test_causal_sees_what_stands_before_and_no_padding_but_itself():
    assert picture(CausalMask()(MASK)) == ["x....", "xx...", "xxx..", "xxxx.", "xxxxx"]


def test_a_window_sees_its_neighbours_and_no_padding_but_itself():
    assert picture(WindowMask(window=1)(MASK)) == ["xx...", "xxx..", ".xxx.", "..xx.", "...xx"]


@pytest.mark.parametrize("window", [0, None, -3])
def test_a_window_of_nothing_is_refused(window):
    with pytest.raises(UserError, match=rf"model\.window={window} lets a token see no other"):
        WindowMask(window=window)


def reach(network, **changes) -> torch.Tensor:
    """Which token's output (rows) depends on which token's embedding (columns), by gradients."""
    encoder = network(position="none", **changes).encoder
    embedded = {}
    encoder.embedding.register_forward_hook(
        lambda module, args, output: embedded.update(x=output.detach().requires_grad_())
    )
    encoder.embedding.register_forward_hook(lambda module, args, output: embedded["x"])
    output = encoder(torch.arange(1, 10)[None], torch.ones(1, 9, dtype=torch.bool))
    rows = [
        torch.autograd.grad(output[0, t, 0], embedded["x"], retain_graph=True)[0][0].abs().sum(-1) for t in range(9)
    ]
    return torch.stack(rows) > 0


def test_causality_of_the_whole_encoder(network):
    assert torch.equal(reach(network, mask="causal"), torch.ones(9, 9).tril().bool())


def test_a_window_reaches_as_far_as_the_layers_carry_it(network):
    place = torch.arange(9)
    distance = (place - place[:, None]).abs()
    assert torch.equal(reach(network, mask="window", window=2, n_layers=1), distance <= 2)
    assert torch.equal(reach(network, mask="window", window=2, n_layers=2), distance <= 4)
