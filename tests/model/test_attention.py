import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from errors import UserError
from model.attention import (
    ATTENTIONS,
    PRODUCTS_UP_TO,
    Additive,
    DotProduct,
    MultiHeadAttention,
    ScaledDotProduct,
)


def padding(lengths: list[int], n_tokens: int) -> torch.Tensor:
    return torch.arange(n_tokens) < torch.tensor(lengths)[:, None]


def scores_by_formula(score: nn.Module, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """The scores of one head's `q (T, K)` and `k (T, K)`, one pair after the other."""
    rows = []
    for query in q:
        if isinstance(score, Additive):
            row = [
                score.weight.weight[0] @ torch.tanh(score.query.weight @ query + score.key.weight @ key) for key in k
            ]
        elif isinstance(score, DotProduct):
            row = [query @ key for key in k]
        else:
            row = [query @ key / math.sqrt(len(query)) for key in k]
        rows.append(torch.stack(row))
    return torch.stack(rows)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_and_its_gradients_equal_the_formula(name):
    torch.manual_seed(0)
    score = ATTENTIONS[name](d_head=4)
    q, k, v = (torch.randn(2, 3, 5, width, requires_grad=True) for width in (4, 4, 6))
    mask = padding([5, 3], 5)
    expected = torch.stack(
        [
            torch.stack(
                [
                    scores_by_formula(score, q[b, h], k[b, h]).masked_fill(~mask[b], -math.inf).softmax(-1) @ v[b, h]
                    for h in range(3)
                ]
            )
            for b in range(2)
        ]
    )
    ours = score(q, k, v, mask[:, None, None, :])
    assert ours.shape == (2, 3, 5, 6)  # the output follows the values
    torch.testing.assert_close(ours, expected)
    direction, inputs = torch.randn_like(ours), (q, k, v, *score.parameters())
    theirs = torch.autograd.grad(expected, inputs, direction)
    for a, b in zip(torch.autograd.grad(ours, inputs, direction), theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("n_heads", [1, 4])
@pytest.mark.parametrize("bias", [True, False])
def test_multi_head_attention_equals_torchs_with_gradients_and_padding(n_heads, bias):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(16, n_heads, bias=bias, batch_first=True)
    ours = MultiHeadAttention(d_model=16, n_heads=n_heads, bias=bias)
    pairs = [(ours.qkv.weight, theirs.in_proj_weight), (ours.output.weight, theirs.out_proj.weight)]
    if bias:
        pairs += [(ours.qkv.bias, theirs.in_proj_bias), (ours.output.bias, theirs.out_proj.bias)]
    with torch.no_grad():
        for our, their in pairs:
            nn.init.normal_(their, std=0.3)
            our.copy_(their)
    x, mask = torch.randn(3, 7, 16, requires_grad=True), padding([7, 4, 1], 7)
    expected, _ = theirs(x, x, x, key_padding_mask=~mask)
    result = ours(x, mask[:, None, None, :])
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-4)
    direction = torch.randn_like(result)
    our_gradients = torch.autograd.grad(result, [x, *(our for our, _ in pairs)], direction)
    their_gradients = torch.autograd.grad(expected, [x, *(their for _, their in pairs)], direction)
    for a, b in zip(our_gradients, their_gradients, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_numeric_mask_is_added_to_the_scores(name):
    torch.manual_seed(0)
    score = ATTENTIONS[name](d_head=4)
    q, k, v = torch.randn(3, 1, 2, 5, 4)
    mask = padding([3], 5)[:, None, None, :]
    numbers = torch.zeros(1, 2, 5, 5).masked_fill(~mask, -math.inf)
    torch.testing.assert_close(score(q, k, v, numbers), score(q, k, v, mask))
    numbers[0, 1, :, 0] = 100.0
    torch.testing.assert_close(score(q, k, v, numbers)[0, 1], v[0, 1, :1].expand(5, 4))


def test_values_may_have_a_width_of_their_own():
    attention = MultiHeadAttention(d_model=12, n_heads=3, d_value=7)
    assert attention.qkv.weight.shape == (12 + 12 + 21, 12)
    assert attention(torch.randn(2, 5, 12), torch.ones(2, 1, 1, 5, dtype=torch.bool)).shape == (2, 5, 12)


def test_widths_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match=r"d_model=10 .* n_heads=4"):
        MultiHeadAttention(d_model=10, n_heads=4)
    q, k, v = torch.randn(1, 1, 5, 4), torch.randn(1, 1, 5, 3), torch.randn(1, 1, 5, 4)
    for score in (ScaledDotProduct(d_head=4), DotProduct(d_head=4), Additive(d_head=4)):
        with pytest.raises(UserError, match="queries are 4 wide and keys 3"):
            score(q, k, v, torch.ones(1, 1, 1, 5, dtype=torch.bool))


@pytest.mark.parametrize("training", [True, False])
def test_in_bf16_attention_and_its_gradients_are_those_of_fp32(training):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 40, 16, requires_grad=True) for _ in range(3))
    mask = padding([40, 7], 40)[:, None, None, :]
    expected = torch.softmax((q @ k.transpose(-1, -2) / 4).masked_fill(~mask, -torch.inf), dim=-1) @ v
    half = [tensor.detach().bfloat16().requires_grad_(training) for tensor in (q, k, v)]
    found = ScaledDotProduct(d_head=16)(*half, mask)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, atol=0.03, rtol=0.03)
    if training:
        expected.square().sum().backward()
        found.float().square().sum().backward()
        for ours, full in zip(half, (q, k, v), strict=True):
            torch.testing.assert_close(ours.grad.float(), full.grad, atol=0.03, rtol=0.05)


def test_the_scores_of_long_texts_are_never_held_at_once(monkeypatch):
    kernel, asked = F.scaled_dot_product_attention, []
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *a, **named: asked.append(a) or kernel(*a, **named))
    score = ScaledDotProduct(d_head=4)
    for dtype, n_tokens, training, by_torch in [
        (torch.bfloat16, PRODUCTS_UP_TO, True, False),
        (torch.bfloat16, PRODUCTS_UP_TO + 1, True, True),
        (torch.bfloat16, 8, False, True),
        (torch.float32, 8, True, True),
    ]:
        asked.clear()
        q = torch.zeros(1, 1, n_tokens, 4, dtype=dtype, requires_grad=training)
        score(q, q, q, torch.ones(1, 1, 1, n_tokens, dtype=torch.bool))
        assert bool(asked) == by_torch
