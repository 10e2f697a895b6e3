import math

import pytest
from torch import nn

from errors import UserError
from model.optim import adamw, parameter_groups

SETTINGS = {"lr": 0.5, "weight_decay": 0.1, "betas": (0.9, 0.98), "warmup": 0.25, "schedule": "cosine"}


def test_decay_groups_partition_the_parameters(network):
    classifier = network(position="learned")
    groups = parameter_groups(classifier, lr=0.5, weight_decay=0.1, head_lr=None, layer_decay=1.0)
    assert {(group["lr"], group["weight_decay"]) for group in groups} == {(0.5, 0.1), (0.5, 0.0)}
    decayed, others = (
        group["params"] for group in sorted(groups, key=lambda group: group["weight_decay"], reverse=True)
    )
    assert len(decayed) + len(others) == len(list(classifier.parameters()))
    assert {id(p) for p in decayed} | {id(p) for p in others} == {id(p) for p in classifier.parameters()}
    linear_weights = [m.weight for m in classifier.modules() if isinstance(m, nn.Linear)]
    assert {id(p) for p in decayed} == {id(p) for p in linear_weights}


def test_lower_blocks_learn_slower_and_the_head_at_its_own_rate(network):
    classifier = network(position="learned", embedding_norm=True, pooling="attention")
    classifier.encoder.blocks[0].requires_grad_(False)
    groups = parameter_groups(classifier, lr=1.0, weight_decay=0.1, head_lr=5.0, layer_decay=0.5)
    rates = {id(parameter): group["lr"] for group in groups for parameter in group["params"]}
    expected = {"encoder.embedding": 0.25, "encoder.position": 0.25, "encoder.embedding_norm": 0.25}
    expected |= {"encoder.blocks.1": 1.0, "encoder.norm": 1.0, "pooling": 5.0, "head": 5.0}
    for name, parameter in classifier.named_parameters():
        if name.startswith("encoder.blocks.0"):
            assert id(parameter) not in rates
        else:
            assert rates[id(parameter)] == next(
                rate for start, rate in expected.items() if name.startswith(start + ".")
            )


@pytest.mark.parametrize(("schedule", "middle"), [("cosine", 0.5 * (1 + math.cos(math.pi * 0.5))), ("linear", 0.5)])
def test_rate_at_start_peak_middle_and_end(schedule, middle):
    layer = nn.Linear(2, 2)
    optimizer, scheduler = adamw(layer, 16, **{**SETTINGS, "schedule": schedule})
    rates = []
    for _ in range(17):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates[0] == 0.0
    assert rates[2] == pytest.approx(0.25)  # half of the warm-up
    assert rates[4] == 0.5  # the peak, after a quarter of the steps
    assert rates[10] == pytest.approx(0.5 * middle)
    assert rates[16] == pytest.approx(0.0, abs=1e-12)


def test_without_warmup_the_first_rate_is_the_peak():
    optimizer, _ = adamw(nn.Linear(2, 2), 16, **{**SETTINGS, "warmup": 0.0})
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_unknown_schedule_is_answered_with_the_known_ones():
    with pytest.raises(UserError, match=r"optimizer\.schedule=step .*cosine, linear"):
        adamw(nn.Linear(2, 2), 16, **{**SETTINGS, "schedule": "step"})
