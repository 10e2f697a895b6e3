from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from errors import UserError
from model.attention import MultiHeadAttention
from model.encoder import PostNormBlock, PreNormBlock
from model.feed_forward import FEED_FORWARDS
from model.pooling import POOLINGS
from model.position import POSITIONS


def copy_block(theirs: nn.TransformerEncoderLayer, ours: PreNormBlock) -> None:
    pairs = [
        (ours.attention.qkv.weight, theirs.self_attn.in_proj_weight),
        (ours.attention.qkv.bias, theirs.self_attn.in_proj_bias),
        (ours.attention.output.weight, theirs.self_attn.out_proj.weight),
        (ours.attention.output.bias, theirs.self_attn.out_proj.bias),
        (ours.feed_forward.inner.weight, theirs.linear1.weight),
        (ours.feed_forward.inner.bias, theirs.linear1.bias),
        (ours.feed_forward.output.weight, theirs.linear2.weight),
        (ours.feed_forward.output.bias, theirs.linear2.bias),
        (ours.attention_norm.weight, theirs.norm1.weight),
        (ours.attention_norm.bias, theirs.norm1.bias),
        (ours.feed_forward_norm.weight, theirs.norm2.weight),
        (ours.feed_forward_norm.bias, theirs.norm2.bias),
    ]
    with torch.no_grad():
        for target, source in pairs:
            target.copy_(source)


@pytest.mark.parametrize(("block", "norm_first"), [(PreNormBlock, True), (PostNormBlock, False)])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_block_equals_torchs_encoder_layer(block, norm_first, activation):
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(
        16, 4, 32, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
    )
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    ours = block(
        attention=MultiHeadAttention(d_model=16, n_heads=4),
        feed_forward=FEED_FORWARDS[activation](d_model=16, d_ff=32),
        norm=partial(nn.LayerNorm, 16),
        dropout=0.0,
    )
    copy_block(theirs, ours)
    x, mask = torch.randn(3, 7, 16), torch.arange(7) < torch.tensor([[7], [4], [1]])
    expected = theirs(x, src_key_padding_mask=~mask)
    torch.testing.assert_close(ours(x, mask[:, None, None, :])[mask], expected[mask], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("name", "activation"), [("geglu", F.gelu), ("swiglu", F.silu)])
def test_gated_feed_forward_equals_the_formula(name, activation):
    torch.manual_seed(0)
    layer, x = FEED_FORWARDS[name](d_model=4, d_ff=6), torch.randn(2, 3, 4)
    w, b = layer.inner.weight, layer.inner.bias
    expected = (activation(x @ w[:6].T + b[:6]) * (x @ w[6:].T + b[6:])) @ layer.output.weight.T + layer.output.bias
    torch.testing.assert_close(layer(x), expected)


def test_a_row_of_padding_is_refused(network):
    mask = torch.tensor([[True, True], [False, False]])
    with pytest.raises(UserError, match="row 1 of the batch is padding only"):
        network()(torch.ones(2, 2, dtype=torch.long), mask)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("position", POSITIONS)
def test_padding_never_changes_a_prediction(network, pooling, position):
    classifier = network(pooling=pooling, position=position)
    ids = torch.randint(1, 50, (1, 5))
    alone = classifier(ids, torch.ones(1, 5, dtype=torch.bool))
    beside = torch.zeros(3, 20, dtype=torch.long)
    beside[1, :5], beside[0], beside[2, :9] = ids[0], torch.randint(1, 50, (20,)), torch.randint(1, 50, (9,))
    mask = torch.arange(20) < torch.tensor([[20], [5], [9]])
    torch.testing.assert_close(classifier(beside, mask)[1], alone[0], atol=1e-5, rtol=1e-5)
    beside[~mask] = 7  # what stands in the padding is never read
    torch.testing.assert_close(classifier(beside, mask)[1], alone[0], atol=1e-5, rtol=1e-5)


def test_every_row_padded_at_the_tail_keeps_its_length(network):
    mask = torch.tensor([[True, True, False, False]] * 2)
    assert network().encoder(torch.ones(2, 4, dtype=torch.long), mask).shape == (2, 4, 16)


@pytest.mark.parametrize(("position", "moves"), [(name, name != "none") for name in POSITIONS])
def test_permuted_tokens_permute_the_outputs_only_without_positions(network, position, moves):
    encoder = network(position=position).encoder
    ids, mask = torch.arange(1, 9)[None], torch.ones(1, 8, dtype=torch.bool)
    order = torch.tensor([3, 1, 0, 2, 7, 6, 5, 4])
    permuted, expected = encoder(ids[:, order], mask), encoder(ids, mask)[:, order]
    assert torch.allclose(permuted, expected, atol=1e-5) is not moves


def test_without_dropout_training_equals_evaluation_and_no_grad_changes_nothing(network):
    classifier = network()
    ids, mask = torch.randint(1, 50, (4, 6)), torch.ones(4, 6, dtype=torch.bool)
    with torch.no_grad():
        quiet = classifier(ids, mask)
    torch.testing.assert_close(classifier(ids, mask), quiet, rtol=0, atol=0)
    torch.testing.assert_close(classifier.train()(ids, mask), quiet)


def test_dropout_acts_in_training_only(network):
    classifier = network(dropout=0.5)
    ids, mask = torch.randint(1, 50, (4, 6)), torch.ones(4, 6, dtype=torch.bool)
    torch.testing.assert_close(classifier(ids, mask), classifier(ids, mask), rtol=0, atol=0)
    classifier.train()
    assert not torch.equal(classifier(ids, mask), classifier(ids, mask))
