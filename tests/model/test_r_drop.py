import pytest
import torch
import torch.nn.functional as F
from torch.distributions import Bernoulli, Categorical, kl_divergence

from errors import UserError
from model.r_drop import LightningRDrop
from model.task import MultiLabel, Regression, SingleLabel

LABELS = ["a", "b", "c"]
FACTS = {"make_optimizer": None, "label_smoothing": 0.0, "checkpoint": {}}


def both_ways(kind, a, b):
    """The mean of the two divergences, by torch's own distributions."""
    p, q = kind(logits=a), kind(logits=b)
    return (kl_divergence(p, q) + kl_divergence(q, p)).mean() / 2


@pytest.mark.parametrize(
    ("task", "targets", "one_loss", "apart"),
    [
        (
            SingleLabel(labels=LABELS),
            torch.tensor([2, 0, 1, 1]),
            F.cross_entropy,
            lambda a, b: both_ways(Categorical, a, b),
        ),
        (
            MultiLabel(labels=LABELS),
            torch.tensor([[1.0, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]]),
            F.binary_cross_entropy_with_logits,
            lambda a, b: both_ways(Bernoulli, a, b),
        ),
        (
            Regression(labels=["score"], mean=1.0, spread=2.0),
            torch.tensor([3.0, -1.0, 1.0, 5.0]),
            lambda logits, scores: F.mse_loss(logits[:, 0], (scores - 1) / 2),
            lambda a, b: F.mse_loss(a, b) / 2,
        ),
    ],
)
def test_the_loss_is_the_formula_of_the_paper_halved(network, monkeypatch, task, targets, one_loss, apart):
    torch.manual_seed(0)
    once, again = torch.randn(2, 4, len(task.labels))
    module = LightningRDrop(network(dropout=0.1), weight=0.6, task=task, **FACTS)
    passes = iter([once, again])
    monkeypatch.setattr(module, "logits", lambda batch: next(passes))
    paper = one_loss(once, targets) + one_loss(again, targets) + 0.6 * apart(once, again)
    torch.testing.assert_close(module.loss({"labels": targets}), paper / 2)


def test_two_passes_differ_by_dropout_and_both_are_learned_from(network):
    torch.manual_seed(0)
    classifier = network(dropout=0.5).train()
    module = LightningRDrop(classifier, weight=1.0, task=SingleLabel(labels=LABELS), **FACTS)
    mask = torch.ones(4, 6, dtype=torch.bool)
    batch = {"ids": torch.randint(1, 50, (4, 6)), "mask": mask, "text": torch.arange(4), "labels": torch.arange(4) % 3}
    seen = []
    classifier.head.register_forward_hook(lambda head, taken, logits: (logits.retain_grad(), seen.append(logits))[0])
    module.loss(batch).backward()
    assert len(seen) == 2
    assert not torch.equal(seen[0], seen[1])
    assert all(logits.grad.abs().sum() > 0 for logits in seen)


def test_without_dropout_it_is_refused(network):
    with pytest.raises(UserError, match=r"r_drop=1.0 needs two passes that differ: give model.dropout=0.1"):
        LightningRDrop(network(dropout=0.0), weight=1.0, task=SingleLabel(labels=LABELS), **FACTS)
