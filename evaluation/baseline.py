"""What a network must beat: TF-IDF with a linear model, and always answering the most frequent class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline


def linear_baseline(train_texts: Sequence[str], train_labels: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Predict with logistic regression on TF-IDF of words and word pairs, fitted on the training texts alone."""
    tfidf = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), dtype=np.float32)
    model = make_pipeline(tfidf, LogisticRegression(C=10, tol=1e-3, max_iter=1000))
    return model.fit(train_texts, train_labels).predict(texts).tolist()


def majority_baseline(train_labels: Sequence[str], n_texts: int) -> list[str]:
    """Predict the class most frequent in training, the first by name among equals."""
    counts = Counter(sorted(train_labels))
    return [counts.most_common(1)[0][0]] * n_texts
