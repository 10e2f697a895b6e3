"""Temperature, abstention and label sets against scipy, brute force and the definition."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from model.calibration import fit_abstention, fit_label_set, fit_temperature
from model.hugging_face import head_of
from model.task import SingleLabel, make_task

LABELS = ["a", "b", "c", "d"]


def sample(n: int, *, temperature: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and classes drawn from what they say at this temperature."""
    draw = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, len(LABELS), generator=draw)
    return logits, torch.multinomial((logits / temperature).softmax(dim=1), 1, generator=draw).squeeze(1)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_the_temperature_is_the_likeliest_one(temperature):
    logits, targets = sample(2000, temperature=temperature)

    def loss(log_temperature):
        scaled = log_softmax(logits.double().numpy() / np.exp(log_temperature), axis=1)
        return -scaled[np.arange(len(scaled)), targets.numpy()].mean()

    expected = np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9}).x)
    assert fit_temperature(logits, targets) == pytest.approx(expected, rel=1e-4)
    assert fit_temperature(logits, targets) == pytest.approx(temperature, rel=0.1)


def test_without_an_error_the_temperature_stays_one_and_of_noise_it_is_high():
    logits, _ = sample(50, temperature=1.0)
    assert fit_temperature(logits, logits.argmax(dim=1)) == 1.0
    assert fit_temperature(logits, logits.argmin(dim=1)) == pytest.approx(20.0, rel=1e-6)


def test_the_temperature_never_changes_the_answer():
    logits, targets = sample(500, temperature=3.0)
    before = SingleLabel(labels=LABELS)
    after = before.calibrated(logits, targets)
    assert after.temperature != 1.0
    torch.testing.assert_close(after.probabilities(logits), (logits / after.temperature).softmax(dim=1))
    assert torch.equal(before.probabilities(logits).argmax(dim=1), after.probabilities(logits).argmax(dim=1))


@pytest.mark.parametrize("temperature", [0.2, 1.0, 4.0])  # where 96, 76 and 42 % are right
def test_no_lower_threshold_answers_as_rightly(temperature):
    logits, targets = sample(300, temperature=temperature)
    probabilities = logits.softmax(dim=1)
    confidence, chosen = probabilities.max(dim=1)
    right = (chosen == targets).double()
    wanted = max(0.95, 1 - float(1 - right.mean()) / 2)

    def accuracy(threshold):
        return float(right[confidence >= threshold].mean())

    found = fit_abstention(probabilities, targets)
    assert accuracy(found) >= wanted
    assert all(accuracy(lower) < wanted for lower in confidence[confidence < found])


def test_abstaining_at_its_ends():
    probabilities = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    assert fit_abstention(probabilities, torch.tensor([0, 0])) == 0.0  # all are right: all are answered
    assert fit_abstention(probabilities, torch.tensor([0, 1])) == pytest.approx(0.75)
    assert fit_abstention(probabilities, torch.tensor([1, 0])) == 1.0  # the surest is wrong
    even = torch.tensor([[0.9, 0.1], [0.9, 0.1]])
    assert fit_abstention(even, torch.tensor([0, 1])) == 1.0  # equal ones are answered together


def test_the_sets_threshold_is_the_conformal_quantile():
    probabilities = torch.linspace(0.01, 0.99, 99).unsqueeze(1).repeat(1, 2)
    zeros = torch.zeros(99, dtype=torch.long)
    assert fit_label_set(probabilities, zeros) == pytest.approx(0.10)  # 90 of (99 + 1) · 0.9 stand at or above it
    assert fit_label_set(probabilities[:8], zeros[:8]) == 0.0  # too few to leave anything out
    assert fit_label_set(probabilities[:9], zeros[:9]) == pytest.approx(0.01)


def test_nine_sets_of_ten_hold_the_truth():
    held = []
    for seed in range(20):
        logits, targets = sample(2000, temperature=2.0, seed=seed)
        least = fit_label_set(logits[:1000].softmax(dim=1), targets[:1000])
        sets = logits[1000:].softmax(dim=1) >= least
        held.append(float(sets.gather(1, targets[1000:, None]).double().mean()))
    assert np.mean(held) == pytest.approx(0.9, abs=0.01)
    assert all(abs(share - 0.9) < 0.04 for share in held)


def test_a_checkpoint_without_them_has_temperature_one():
    old = make_task(name="single_label", labels=LABELS)
    logits, _ = sample(5, temperature=1.0)
    assert torch.equal(old.probabilities(logits), logits.softmax(dim=1))
    assert (old.abstain_below, old.in_set_from) == (None, None)


def test_an_export_takes_the_temperature_with_it(network):
    classifier = network(block="post_norm", position="learned", embedding_norm=True, pooling="cls")
    weight, bias = head_of(SimpleNamespace(network=classifier, task=SingleLabel(labels=LABELS[:3], temperature=2.0)))
    torch.testing.assert_close(weight, classifier.head.weight.detach() / 2)
    torch.testing.assert_close(bias, classifier.head.bias.detach() / 2)
