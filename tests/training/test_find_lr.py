import json

import numpy as np
import pytest

from errors import UserError
from training.find_lr import FEWEST, HIGHEST, LOWEST, smoothed, suggested


def test_the_running_mean_is_that_of_the_formula():
    losses = np.random.default_rng(0).random(30)
    for step in range(30):
        weights = 0.9 ** np.arange(step, -1, -1)
        assert smoothed(list(losses))[step] == pytest.approx((weights * losses[: step + 1]).sum() / weights.sum())


def test_the_suggestion_is_where_the_loss_falls_most_steeply():
    rates = np.geomspace(1e-6, 1, 400)
    losses = 1 / (1 + (rates / 1e-3) ** 2) + 5 * rates  # steepest over log(rate) at 1e-3, then rising
    assert suggested(list(rates), list(losses)) == pytest.approx(1e-3, rel=0.5)


@pytest.mark.parametrize("losses", [list(range(1, 40)), [float("nan")] * 20])
def test_a_loss_that_never_fell_is_a_sentence(losses):
    with pytest.raises(UserError, match="the loss never fell"):
        suggested(list(np.geomspace(1e-6, 1, len(losses))), losses)


def test_a_run_prints_the_override_and_trains_nothing(run, caplog):
    folder = run("only=find_lr", "model.dropout=0.0")
    assert {p.name for p in folder.iterdir()} == {"check.json", "config.yaml", "find_lr.json", "find_lr.svg"}
    found = json.loads((folder / "find_lr.json").read_text())
    assert LOWEST < found["suggested"] < HIGHEST
    assert len(found["lr"]) == len(found["loss"]) > FEWEST
    assert found["lr"] == sorted(found["lr"])
