"""The worked examples of the two articles on attention that the project started from, with the articles' own figures."""

import math

import pytest
import torch

from model.attention import DotProduct, MultiHeadAttention, ScaledDotProduct

INPUTS = torch.tensor([[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
W_KEY = torch.tensor([[0.0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]])
W_QUERY = torch.tensor([[1.0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
W_VALUE = torch.tensor([[0.0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]])
KEYS = torch.tensor([[0.0, 1, 1], [4, 4, 0], [2, 3, 1]])
QUERIES = torch.tensor([[1.0, 0, 2], [2, 2, 2], [2, 1, 3]])
VALUES = torch.tensor([[1.0, 2, 3], [2, 8, 0], [2, 6, 3]])
SCORES = torch.tensor([[2.0, 4, 4], [4, 16, 12], [4, 12, 10]])
WEIGHTS = torch.tensor(
    [
        [6.3379e-02, 4.6831e-01, 4.6831e-01],
        [6.0337e-06, 9.8201e-01, 1.7986e-02],
        [2.9539e-04, 8.8054e-01, 1.1917e-01],
    ]
)
OUTPUTS = torch.tensor([[2.0, 7.0, 1.5], [2.0, 8.0, 0.0], [2.0, 7.8, 0.3]])
SEEN = torch.ones(1, 1, 1, 3, dtype=torch.bool)


@pytest.fixture
def attention() -> MultiHeadAttention:
    """One head with the article's three matrices and an output that changes nothing (its last column is left empty)."""
    attention = MultiHeadAttention(d_model=4, n_heads=1, d_head=3, d_value=3, bias=False, score=DotProduct)
    with torch.no_grad():
        attention.qkv.weight.copy_(torch.cat([W_QUERY, W_KEY, W_VALUE], dim=1).T)
        attention.output.weight.copy_(torch.eye(4, 3))
    return attention


def test_inputs_become_the_articles_queries_keys_and_values(attention):
    queries, keys, values = attention.qkv(INPUTS).split(attention.widths, dim=-1)
    assert torch.equal(queries, QUERIES)
    assert torch.equal(keys, KEYS)
    assert torch.equal(values, VALUES)


def test_plain_dot_products_softmax_and_weighted_values(attention):
    identity = torch.eye(3)[None, None]
    weights = attention.score(QUERIES[None, None], KEYS[None, None], identity, SEEN)[0, 0]
    assert torch.equal(QUERIES @ KEYS.T, SCORES)
    torch.testing.assert_close(weights, WEIGHTS, rtol=1e-4, atol=0)
    torch.testing.assert_close(weights, SCORES.softmax(dim=-1))
    outputs = attention(INPUTS[None], SEEN)[0]
    torch.testing.assert_close(outputs[:, :3], SCORES.softmax(dim=-1) @ VALUES)
    assert outputs[:, 3].abs().sum() == 0
    # The article rounds the weights to one decimal before it multiplies, which moves an output by up to 0.05 · Σ|value|.
    assert ((outputs[:, :3] - OUTPUTS).abs() <= 0.05 * VALUES.abs().sum(dim=0)).all()


def test_rounded_weights_give_the_articles_rounded_outputs():
    rounded = torch.tensor([[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.9, 0.1]])
    torch.testing.assert_close(rounded @ VALUES, OUTPUTS, atol=0.0501, rtol=0)


@pytest.fixture
def words() -> torch.Tensor:
    """ "I should sleep now": four words, each a vector of 512 numbers."""
    torch.manual_seed(0)
    return torch.randn(1, 4, 512)


def test_a_loop_over_words_equals_the_matrix_form(words):
    score, seen = ScaledDotProduct(d_head=512), torch.ones(1, 1, 1, 4, dtype=torch.bool)
    w_query, w_key, w_value = (torch.randn(512, 512) / math.sqrt(512) for _ in range(3))
    q, k, v = words @ w_query, words @ w_key, words @ w_value
    looped = []
    for word in range(4):
        scores = [float(q[0, word] @ k[0, other]) / math.sqrt(512) for other in range(4)]
        total = sum(math.exp(s) for s in scores)
        looped.append(sum((math.exp(s) / total * v[0, other] for other, s in enumerate(scores)), torch.zeros(512)))
    matrix = score(q[:, None], k[:, None], v[:, None], seen)[0, 0]
    torch.testing.assert_close(matrix, torch.stack(looped), atol=1e-5, rtol=1e-4)


def test_eight_heads_one_by_one_equal_the_vectorised_form_both_scaled(words):
    attention = MultiHeadAttention(d_model=512, n_heads=8)
    seen = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    q, k, v = attention.qkv(words)[0].split(512, dim=-1)  # (4, 512) each
    heads = []
    for head in range(8):
        part = slice(64 * head, 64 * (head + 1))
        scores = torch.stack([torch.stack([q[i, part] @ k[j, part] for j in range(4)]) for i in range(4)]) / math.sqrt(
            64
        )
        heads.append(scores.softmax(dim=-1) @ v[:, part])
    by_word = torch.stack([torch.cat([head[word] for head in heads]) for word in range(4)])  # (4, 512)
    torch.testing.assert_close(attention(words, seen)[0], attention.output(by_word), atol=1e-5, rtol=1e-4)
    unscaled = MultiHeadAttention(d_model=512, n_heads=8, score=DotProduct)
    unscaled.load_state_dict(attention.state_dict())
    assert not torch.allclose(unscaled(words, seen), attention(words, seen), atol=1e-3)
