"""What the simplest models reach on the same texts."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

MOST_TEXTS = 50_000  # training texts the baseline reads: TF-IDF of word pairs holds a vocabulary that grows with them


def stride(n_texts: int, most: int) -> int:
    """Take each so-manyeth of the texts, and they are at most `most`, spread over all."""
    return max(1, -(-n_texts // most))


def linear_baseline(
    task: str, train_texts: Sequence[str], train_labels: Sequence[Any], texts: Sequence[str]
) -> list[Any]:
    """Predict with a linear model on TF-IDF of words and word pairs, fitted on the training texts alone.

    Logistic regression, one for each label where a text may have several, ridge regression for a score.
    """
    tfidf = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), dtype=np.float32)
    if not any(re.search(tfidf.token_pattern, text) for text in train_texts):
        tfidf.set_params(analyzer="char")  # no word of two letters anywhere
    logistic = LogisticRegression(C=10, tol=1e-3, max_iter=1000)  # of C 3, 10, 30: `docs/experiments.md`
    if task == "regression":
        return make_pipeline(tfidf, Ridge()).fit(train_texts, train_labels).predict(texts).tolist()
    if task == "single_label":
        return make_pipeline(tfidf, logistic).fit(train_texts, train_labels).predict(texts).tolist()
    binarizer = MultiLabelBinarizer().fit(train_labels)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Label .* is present in all training examples")
        model = make_pipeline(tfidf, OneVsRestClassifier(logistic)).fit(train_texts, binarizer.transform(train_labels))
    return [list(labels) for labels in binarizer.inverse_transform(model.predict(texts))]


def constant_baseline(task: str, train_labels: Sequence[Any], n_texts: int) -> list[Any]:
    """Predict the same for all: the class most frequent in training (the first by name among equals), the labels that more
    than half of its texts have, or the mean score."""
    if task == "regression":
        return [float(np.mean(train_labels))] * n_texts
    if task == "single_label":
        return [Counter(sorted(train_labels)).most_common(1)[0][0]] * n_texts
    counts = Counter(label for labels in train_labels for label in labels)
    return [sorted(label for label, n in counts.items() if 2 * n > len(train_labels))] * n_texts
