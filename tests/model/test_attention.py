import math

import pytest
import torch

from errors import UserError
from model.attention import MultiHeadAttention


def by_formula(attention: MultiHeadAttention, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """softmax(QKᵀ/√K)V, one head after the other, as written in the paper."""
    q, k, v = attention.qkv(x).chunk(3, dim=-1)
    outputs = []
    for head in range(q.shape[-1] // attention.d_head):
        part = slice(head * attention.d_head, (head + 1) * attention.d_head)
        scores = q[..., part] @ k[..., part].mT / math.sqrt(attention.d_head)
        weights = scores.masked_fill(~mask[:, None, :], -math.inf).softmax(dim=-1)
        outputs.append(weights @ v[..., part])
    return attention.output(torch.cat(outputs, dim=-1))


def test_attention_and_its_gradients_equal_the_formula():
    torch.manual_seed(0)
    attention = MultiHeadAttention(d_model=12, n_heads=3)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    x = torch.randn(2, 5, 12, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    ours, expected = attention(x, mask[:, None, None, :]), by_formula(attention, y, mask)
    torch.testing.assert_close(ours, expected)
    direction = torch.randn_like(ours)
    (gradient,) = torch.autograd.grad(ours, x, direction, retain_graph=True)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, y, direction, retain_graph=True)[0])
    for parameter in attention.parameters():
        (a,) = torch.autograd.grad(ours, parameter, direction, retain_graph=True)
        (b,) = torch.autograd.grad(expected, parameter, direction, retain_graph=True)
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(UserError, match=r"d_model=10 .* n_heads=4"):
        MultiHeadAttention(d_model=10, n_heads=4)
