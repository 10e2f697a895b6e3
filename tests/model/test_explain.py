import math

import pytest
import torch

from errors import UserError
from model.explain import attention_maps, attributions
from tests.model.test_checkpoint import overfit as overfit

TEXT = "a heavy hammer and a pear"


def test_attention_maps_are_the_softmax_of_each_layers_own_queries_and_keys(overfit):
    inputs = []
    hooks = [
        block.attention.register_forward_hook(lambda module, arguments, output: inputs.append((module, arguments[0])))
        for block in overfit.network.encoder.blocks
    ]
    tokens, maps = attention_maps(overfit, TEXT)
    for hook in hooks:
        hook.remove()
    assert tokens == ["[CLS]", "a", "heavy", "hammer", "and", "a", "pear", "[SEP]"]
    assert maps.shape == (2, 4, 8, 8)
    for layer, (attention, x) in enumerate(inputs):
        q, k, _ = attention.qkv(x.clone())[0].detach().split(16, dim=-1)
        for head in range(4):
            part = slice(4 * head, 4 * head + 4)
            expected = (q[:, part] @ k[:, part].T / math.sqrt(4)).softmax(dim=-1)
            torch.testing.assert_close(maps[layer, head], expected, atol=1e-6, rtol=1e-5)


def test_explaining_leaves_the_network_as_it_was(overfit):
    before = overfit.predict_proba([TEXT])
    attention_maps(overfit, TEXT)
    attributions(overfit, TEXT)
    assert torch.equal(overfit.predict_proba([TEXT]), before)
    assert all(parameter.grad is None for parameter in overfit.network.parameters())


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_text_has_finite_maps_and_attributions(overfit, text):
    tokens, maps = attention_maps(overfit, text)
    assert tokens == ["[CLS]", "[UNK]", "[SEP]"]
    torch.testing.assert_close(maps.sum(dim=-1), torch.ones(2, 4, 3))
    assert attributions(overfit, text).scores.abs().sum() == 0


@pytest.mark.parametrize("label", [None, "fruit", "tool"])
def test_attributions_add_up_to_the_logits_change(overfit, label):
    result = attributions(overfit, TEXT, label=label)
    assert result.label == (label or overfit.predict([TEXT])[0].label)
    assert abs(result.change) > 0.1
    assert float(result.scores.sum()) == pytest.approx(result.change, rel=0.01)
    assert result.scores[0] == result.scores[-1] == 0  # [CLS] and [SEP] stand in both texts


def test_what_only_one_class_says_speaks_for_it(overfit):
    result = attributions(overfit, "apple", label="fruit")
    assert result.scores[1] > 0
    assert attributions(overfit, "apple", label="tool").scores[1] < 0


def test_an_unknown_label_is_answered_with_the_known_ones(overfit):
    with pytest.raises(UserError, match="label 'meat' is unknown: choose one of fruit, tool"):
        attributions(overfit, TEXT, label="meat")
