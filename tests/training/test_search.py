"""Optuna over the command line."""

import re

import pytest
from hydra.errors import MissingConfigException

from errors import UserError
from training.configuration import hydra_sentences

SEARCH = ("hparams=optuna", "data=files", "data.train=corpus.csv", "experiment=quick", "trainer.accelerator=cpu")


def test_a_search_goes_on_after_a_trial_that_cannot_work(command, corpus, tmp_path):
    pytest.importorskip("optuna")
    result = command(
        "train.py", *SEARCH, "hydra.sweeper.n_trials=2", "model.n_heads=2,3", "seed=1", "hydra.sweep.dir=s"
    )
    assert result.returncode == 0, result.stderr
    sentence = "error: d_model=32 is not divisible by n_heads=3: choose d_model as a multiple of n_heads\n"
    assert result.stderr == sentence
    assert len(list(tmp_path.glob("s/*/best.ckpt"))) == 1
    best, again = result.stdout.splitlines()[-2:]
    assert re.fullmatch(r"best        \d\.\d{4}, of 2 trials in s/", best)
    assert again.startswith("again       python train.py data=files data.train=corpus.csv experiment=quick")
    assert "model.n_heads=2" in again
    assert "hparams" not in again
    assert re.search(r"optimizer\.lr=0\.\d+", again)


def test_a_space_that_names_an_unknown_key_is_a_sentence(command, corpus, tmp_path):
    pytest.importorskip("optuna")
    result = command("train.py", *SEARCH, "hydra.sweeper.n_trials=2", "model.n_head=2,3")
    assert result.returncode == 2
    assert result.stderr == "error: model.n_head: there is no such key; did you mean model.n_heads?\n"


def test_without_the_package_it_is_a_sentence():
    with pytest.raises(UserError, match=r"hparams=optuna needs .* pip install .*'.\[optuna\]'"), hydra_sentences():
        raise MissingConfigException(
            "In 'hparams/optuna': Could not find 'hydra/sweeper/optuna'", "hydra/sweeper/optuna"
        )


def test_a_search_in_which_nothing_worked_is_a_sentence():
    with pytest.raises(UserError, match="no trial could be completed"), hydra_sentences():
        raise ValueError("No trials are completed yet.")
    with pytest.raises(ValueError, match="another"), hydra_sentences():
        raise ValueError("another")
