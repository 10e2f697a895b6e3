"""Training and prediction as scikit-learn has them: `HeedClassifier().fit(texts, labels).predict(texts)`."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from model import load_classifier
from training.configuration import check_ranges, hydra_sentences
from training.run import train


class HeedClassifier(ClassifierMixin, BaseEstimator):
    """One class a text, for `cross_val_score`, `GridSearchCV`, pipelines and `clone`.

    `overrides` are what `train.py` takes on the command line, `("model=tiny", "seed=1")`; of the texts given a tenth each is
    cut for validation, which chooses the epoch, and for the test that every run ends with. After `fit`, `classes_` holds the
    labels as they were given, and `classifier_` is the `TextClassifier`. Raises `UserError` as `train.py` says its mistakes.
    """

    def __init__(self, overrides: Sequence[str] = (), *, verbose: bool = False) -> None:
        self.overrides = overrides
        self.verbose = verbose

    def fit(self, X: Sequence[str], y: Sequence[Any]) -> HeedClassifier:  # noqa: N803
        """Train in a temporary folder, of which nothing is left; `verbose` shows the line of each epoch."""
        self.classes_, numbers = np.unique(np.asarray(y), return_inverse=True)
        with tempfile.TemporaryDirectory() as name, open(os.devnull, "w") as nowhere:
            folder = Path(name)
            rows = [json.dumps({"text": text, "label": int(i)}) for text, i in zip(X, numbers, strict=True)]
            (folder / "train.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
            settings = [
                "data=files",
                f"data.train={folder / 'train.jsonl'}",
                "task=single_label",
                f"cache_dir={folder}",
            ]
            with initialize_config_dir(str(Path(__file__).parent / "conf"), version_base="1.3"), hydra_sentences():
                config = compose("config", overrides=[*settings, *self.overrides])
            check_ranges(config)
            with nullcontext() if self.verbose else redirect_stdout(nowhere):
                train(config, folder, started=time.perf_counter())
            self.classifier_ = load_classifier(folder / "best.ckpt")
        return self

    def predict_proba(self, X: Sequence[str]) -> np.ndarray:  # noqa: N803
        """Probabilities `(R, C)`, columns as `classes_`."""
        check_is_fitted(self)
        found = np.zeros((len(X), len(self.classes_)), np.float32)  # a class that training lost as a copy has none
        found[:, [int(label) for label in self.classifier_.labels]] = self.classifier_.predict_proba(list(X)).numpy()
        return found

    def predict(self, X: Sequence[str]) -> np.ndarray:  # noqa: N803
        """The most probable class of each text, `(R,)`."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]
