"""A linear model on tokens and pairs of them, fitted to join a network (`model/ngrams.py`).

P pieces of training texts, N n_buckets, C classes.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor

from data.batching import EncodedTexts
from evaluation.baseline import MOST_TEXTS, stride
from model.ngrams import NgramLinear, hashed
from model.task import MultiLabel, Regression, SingleLabel
from padding import cut_by_budget, pad

C, SMOOTHING = 30, 0.1  # `docs/experiments.md`
RARE = -10.0  # the logit of a label that no text has
BATCH_TOKENS = 2**16


def fit(
    ngrams: NgramLinear, train: EncodedTexts, task: SingleLabel, *, rows: np.ndarray | None = None, balanced: bool
) -> None:
    """Fit on at most `MOST_TEXTS` of the texts `rows` (None: all), each piece of a text for itself."""
    chosen = np.arange(len(train)) if rows is None else rows
    chosen = chosen[:: stride(len(chosen), MOST_TEXTS)]
    counts, numbers = count(train, torch.from_numpy(chosen), n_buckets=ngrams.n_buckets)
    labels = train.labels[numbers]  # (P,) or (P, C)
    seen = np.flatnonzero(counts.getnnz(axis=0))  # the others' weights stay zero, and would take as long
    tfidf = TfidfTransformer(sublinear_tf=True).fit(counts[:, seen])
    weights, biases = linear_model(task, tfidf.transform(counts[:, seen]), labels, balanced=balanced)
    ngrams.idf[seen] = torch.from_numpy(tfidf.idf_).to(ngrams.idf)
    ngrams.weight[seen] = torch.from_numpy(weights.T).to(ngrams.weight)
    ngrams.bias.copy_(torch.from_numpy(biases))


def count(train: EncodedTexts, rows: Tensor, *, n_buckets: int) -> tuple[csr_matrix, Tensor]:
    """How often each bucket is in each piece of the texts `rows`, `(P, N)`, and whose piece each is, `(P,)`."""
    order = rows[train.tokens.lengths[rows].argsort(stable=True)]
    parts, numbers, n_pieces = [], [], 0
    ends = cut_by_budget(train.tokens.lengths[order].numpy(), max_tokens=BATCH_TOKENS)
    for some in order.tensor_split(ends[:-1]):
        ids, mask, text = pad(train.tokens, some, pad_id=train.pad_id)
        buckets, real = hashed(ids, mask, n_buckets)
        piece, place = real.nonzero(as_tuple=True)
        parts.append(torch.stack([piece + n_pieces, buckets[piece, place]]))
        numbers.append(some[text])
        n_pieces += len(ids)
    places = torch.cat(parts, dim=1).numpy()
    ones = np.ones(places.shape[1], np.float32)
    return csr_matrix((ones, (places[0], places[1])), shape=(n_pieces, n_buckets)), torch.cat(numbers)


def linear_model(task: SingleLabel, x: csr_matrix, labels: Tensor, *, balanced: bool) -> tuple[np.ndarray, np.ndarray]:
    """Weights `(C, N)` and biases `(C,)` from TF-IDF `x (P, N)`: ridge regression for a score; else for each class a logistic
    regression against the others on `x` times the class's log-count ratio (Wang and Manning 2012, "Baselines and Bigrams",
    section 2.3)."""
    if isinstance(task, Regression):
        ridge = Ridge().fit(x, ((labels - task.mean) / task.spread).numpy())
        return ridge.coef_.reshape(1, -1), np.array([ridge.intercept_])
    are_on = labels if isinstance(task, MultiLabel) else F.one_hot(labels, len(task.labels))  # (P, C)
    weights, biases = np.zeros((len(task.labels), x.shape[1])), np.full(len(task.labels), RARE)
    logistic = LogisticRegression(C=C, solver="liblinear", max_iter=1000, class_weight="balanced" if balanced else None)
    for label, on in enumerate(are_on.T.bool().numpy()):
        if on.any() and not on.all():
            ratio = log_count_ratio(x, on)
            logistic.fit(x.multiply(ratio).tocsr(), on)
            weights[label], biases[label] = logistic.coef_[0] * ratio, logistic.intercept_[0]
        elif on.all():
            biases[label] = -RARE
    return weights, biases


def log_count_ratio(x: csr_matrix, on: np.ndarray) -> np.ndarray:
    """How much likelier each column of `x (P, N)` is in the rows `on (P,)` than in the others, `(N,)`."""
    inside, outside = (SMOOTHING + np.asarray(x[rows].sum(axis=0))[0] for rows in (on, ~on))  # (N,)
    return np.log(inside / inside.sum()) - np.log(outside / outside.sum())
