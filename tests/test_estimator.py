"""scikit-learn's own tools around the estimator."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from errors import UserError
from estimator import HeedClassifier
from tests.conftest import FRUIT, TOOLS

QUICK = ("experiment=quick", "tokenizer.min_frequency=1", "trainer.accelerator=cpu")
LEARN = (*QUICK, "trainer.max_epochs=12", "optimizer.lr=0.02", "patience=null")
TEXTS = [f"{text} {i}" for i, text in enumerate((FRUIT + TOOLS) * 3)]
LABELS = (["fruit"] * 6 + ["tool"] * 6) * 3


def test_fit_predict_and_score(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = HeedClassifier(LEARN).fit(TEXTS, LABELS)
    assert model.classes_.tolist() == ["fruit", "tool"]
    probabilities = model.predict_proba(TEXTS)
    assert probabilities.shape == (36, 2)
    assert probabilities.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert model.predict(TEXTS).tolist() == model.classes_[probabilities.argmax(axis=1)].tolist()
    assert model.score(TEXTS, LABELS) > 0.9
    assert capsys.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(TEXTS) == probabilities).all()


def test_labels_keep_their_type_and_order():
    numbers = [{"fruit": 10, "tool": 9}[label] for label in LABELS]
    model = HeedClassifier(LEARN).fit(np.array(TEXTS), np.array(numbers))
    assert model.classes_.tolist() == [9, 10]
    assert model.predict(TEXTS).dtype == np.array(numbers).dtype
    assert model.score(TEXTS, numbers) > 0.9


def test_clone_and_cross_val_score():
    model = HeedClassifier(LEARN)
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == {"overrides": LEARN, "verbose": False}
    scores = cross_val_score(model, TEXTS, LABELS, cv=2)
    assert scores.shape == (2,)
    assert (scores > 0.5).all()
    assert model.set_params(overrides=QUICK).overrides == QUICK


def test_mistakes_are_sentences():
    with pytest.raises(NotFittedError):
        HeedClassifier().predict(["a text"])
    with pytest.raises(UserError, match=r"model\.d_modle: there is no such key; did you mean model\.d_model\?"):
        HeedClassifier(("model.d_modle=3",)).fit(TEXTS, LABELS)
    with pytest.raises(UserError, match="one class only"):
        HeedClassifier(QUICK).fit(TEXTS, ["a"] * 36)
