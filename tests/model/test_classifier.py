import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from errors import UserError
from model import build_classifier
from model.build import TABLES
from model.classifier import mean_over_pieces
from model.encoder import NORMS
from model.feed_forward import FEED_FORWARDS
from model.optim import adamw
from tests.conftest import SMALL


@pytest.mark.parametrize("n_classes", [2, 7])
def test_first_loss_is_the_logarithm_of_the_number_of_classes(n_classes):
    classifier = build_classifier(**{**SMALL, "n_classes": n_classes})
    ids, mask = torch.randint(1, 50, (5, 9)), torch.ones(5, 9, dtype=torch.bool)
    loss = F.cross_entropy(classifier(ids, mask), torch.arange(5) % n_classes)
    assert loss.item() == pytest.approx(math.log(n_classes), abs=1e-6)


def combinations() -> list[dict[str, str]]:
    """Every pair of attention, position and mask with each block and pooling; the smaller choices take turns."""
    axes = [TABLES[key] for key in ("attention", "position", "mask", "block", "pooling")]
    found = []
    for i, (attention, position, mask, block, pooling) in enumerate(itertools.product(*axes)):
        if (attention, position) == ("additive", "rotary") or (mask, pooling) == ("causal", "cls"):
            continue  # refused, see below
        norm, feed_forward = list(NORMS)[i % len(NORMS)], list(FEED_FORWARDS)[i % len(FEED_FORWARDS)]
        choices = {"attention": attention, "position": position, "mask": mask, "block": block, "pooling": pooling}
        found.append({**choices, "norm": norm, "feed_forward": feed_forward})
    return found


@pytest.mark.parametrize("choices", combinations(), ids=lambda choices: "-".join(choices.values()))
def test_one_step_changes_every_parameter(network, choices):
    classifier = network(**choices, window=2).train()
    before = {name: parameter.detach().clone() for name, parameter in classifier.named_parameters()}
    optimizer, _ = adamw(classifier, 10, lr=0.1, weight_decay=0.0, betas=(0.9, 0.98), warmup=0.0, schedule="cosine")
    ids, mask = torch.randint(1, 50, (8, 24)), torch.ones(8, 24, dtype=torch.bool)
    F.cross_entropy(classifier(ids, mask), torch.arange(8) % 3).backward()
    optimizer.step()
    for name, parameter in classifier.named_parameters():
        assert parameter.isfinite().all(), name
        assert not torch.equal(parameter, before[name]), name


def test_a_seed_fixes_the_weights():
    def weights(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return torch.cat([p.flatten() for p in build_classifier(**SMALL).parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_weights_follow_the_table_of_initialise():
    torch.manual_seed(0)
    wide = {"vocab_size": 2000, "d_model": 64, "d_ff": 256, "n_layers": 2, "position": "learned", "max_len": 500}
    classifier = build_classifier(**{**SMALL, **wide})
    block = classifier.encoder.blocks[0]
    expected = [
        (classifier.encoder.embedding.weight[1:], 0.02),
        (classifier.encoder.position.embedding.weight, 0.02),
        (block.attention.qkv.weight, 64**-0.5),
        (block.attention.output.weight, 64**-0.5 / 2),
        (block.feed_forward.inner.weight, 64**-0.5),
        (block.feed_forward.output.weight, 256**-0.5 / 2),
    ]
    for weight, std in expected:
        assert weight.std().item() == pytest.approx(std, rel=0.05)
    assert classifier.encoder.embedding.weight[0].abs().sum() == 0
    assert classifier.head.weight.abs().sum() == 0
    assert all(p.abs().sum() == 0 for name, p in classifier.named_parameters() if name.endswith("bias"))


@pytest.mark.parametrize("key", TABLES)
def test_unknown_names_are_answered_with_the_known_ones(key):
    with pytest.raises(UserError, match=rf"model\.{key}=typo is unknown: choose one of {', '.join(TABLES[key])}"):
        build_classifier(**{**SMALL, key: "typo"})


def test_choices_that_make_no_sense_together_are_refused():
    with pytest.raises(UserError, match=r"model\.position=rotary needs a dot product, not model\.attention=additive"):
        build_classifier(**{**SMALL, "position": "rotary", "attention": "additive"})
    with pytest.raises(UserError, match=r"model\.mask=causal lets \[CLS\], the first token, see nothing"):
        build_classifier(**{**SMALL, "mask": "causal", "pooling": "cls"})
    with pytest.raises(UserError, match=r"model\.window=None lets a token see no other"):
        build_classifier(**{**SMALL, "mask": "window"})
    with pytest.raises(UserError, match=r"d_head=5 .* is odd"):
        build_classifier(**{**SMALL, "position": "rotary", "d_model": 20})


def test_logits_are_averaged_over_the_pieces_of_a_text():
    logits = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 0.0]])
    assert mean_over_pieces(logits, torch.tensor([0, 1, 1, 2]), 3).tolist() == [[1.0, 2.0], [4.0, 5.0], [7.0, 0.0]]
