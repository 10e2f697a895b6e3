"""After training: a linear model on pairs of tokens joins the network, as much as validation finds likely.

R texts of validation, P pieces of training texts, N n_buckets, C classes.
"""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor

from data.batching import EncodedTexts
from data.datamodule import TextDataModule
from evaluation.baseline import MOST_TEXTS, stride
from files import write_whole
from model.build import build_classifier
from model.calibration import fit_temperature
from model.checkpoint import load_classifier
from model.classifier import Classifier
from model.ngrams import MixedClassifier, NgramLinear, hashed
from model.task import MultiLabel, Regression, SingleLabel
from model.text_classifier import TextClassifier
from padding import cut_by_budget, pad

log = logging.getLogger("heed")
MOST_BUCKETS, MOST_WEIGHTS = 2**18, 2**24  # 64 MiB of weights at most
RARE = -10.0  # the logit of a label that no text has
SHARES = torch.arange(20) / 20  # of the linear model, among which validation chooses


def mix(alone: TextClassifier, data: TextDataModule, path: Path, *, balanced: bool) -> TextClassifier:
    """Add to the network in the checkpoint `path` a linear model, fitted on the training texts; say what it brings.

    The logits become (1 - s) · the network's + s · the linear model's, with the share s of which validation is likeliest at
    the best temperature. (Cheng et al. 2016, arXiv:1606.07792, train the two together: `docs/experiments.md`.) With `balanced`,
    classes count alike in the fit. Returns what the file then holds; it stays as it is where s is 0, where the two are mixed
    already (of a run that was killed after that), and with `data.streaming=true`, where the texts are not here.
    """
    if data.stream is not None or alone.network.architecture["n_buckets"]:
        return alone
    assert data.splits is not None
    task, n_classes = alone.task, len(alone.labels)
    n_buckets = min(MOST_BUCKETS, 2 ** int(np.log2(MOST_WEIGHTS / n_classes)))
    network = build_classifier(**{**alone.network.architecture, "n_buckets": n_buckets}).eval()
    network.load_state_dict(alone.network.state_dict(), strict=False)
    ngrams = cast(MixedClassifier, network).ngrams
    fit(ngrams, data.encoded["train"], task, rows=data.train_rows, balanced=balanced)
    mixed = TextClassifier(
        network,
        task=task,
        tokenizer=alone.tokenizer,
        truncation=alone.truncation,
        n_parts=alone.n_parts,
        device=alone.device,
    )
    texts, truth = data.splits["validation"]["text"][:], data.encoded["validation"].labels
    ours = alone.logits(texts)  # (R, C)
    linear = mixed.logits(texts) - ours  # (R, C)
    losses = [loss(task, (1 - s) * ours + s * linear, truth) for s in SHARES]
    share = float(SHARES[int(np.argmin(losses))])
    log.info(
        "mixed       with a linear model on pairs of tokens, its share %.2f: loss on validation %.3f, alone %.3f, linear %.3f",
        *(share, min(losses), losses[0], loss(task, linear, truth)),
    )
    if share == 0.0:
        return alone
    parts: list[tuple[Any, float]] = [(network.head, 1 - share), (ngrams, share)]
    for part, factor in parts:
        part.weight.data *= factor
        part.bias.data *= factor
    write_mixed(path, network, task.calibrated((1 - share) * ours + share * linear, truth))
    return load_classifier(path, device=alone.device)


def fit(
    ngrams: NgramLinear, train: EncodedTexts, task: SingleLabel, *, rows: np.ndarray | None = None, balanced: bool
) -> None:
    """Fit on at most `MOST_TEXTS` of the texts `rows` (None: all), each piece of a text for itself."""
    chosen = np.arange(len(train)) if rows is None else rows
    chosen = chosen[:: stride(len(chosen), MOST_TEXTS)]
    counts, numbers = count(train, torch.from_numpy(chosen), n_buckets=ngrams.n_buckets)
    labels = train.labels[numbers]  # (P,) or (P, C)
    tfidf = TfidfTransformer(sublinear_tf=True).fit(counts)
    weights, biases = linear_model(task, tfidf.transform(counts), labels, balanced=balanced)
    seen = np.asarray(counts.sum(axis=0)).ravel() > 0
    ngrams.idf.copy_(torch.from_numpy(np.where(seen, tfidf.idf_, 0.0)))
    ngrams.weight.copy_(torch.from_numpy(weights.T))
    ngrams.bias.copy_(torch.from_numpy(biases))


def count(train: EncodedTexts, rows: Tensor, *, n_buckets: int) -> tuple[csr_matrix, Tensor]:
    """How often each bucket is in each piece of the texts `rows`, `(P, N)`, and whose piece each is, `(P,)`."""
    order = rows[train.tokens.lengths[rows].argsort(stable=True)]
    parts, numbers, n_pieces = [], [], 0
    ends = cut_by_budget(train.tokens.lengths[order].numpy(), max_tokens=2**16)
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
    """Weights `(C, N)` and biases `(C,)` from TF-IDF `x (P, N)`: logistic regression, one for each label where a text may have
    several, ridge regression for a score."""
    if isinstance(task, Regression):
        ridge = Ridge().fit(x, ((labels - task.mean) / task.spread).numpy())
        return ridge.coef_.reshape(1, -1), np.array([ridge.intercept_])
    weights, biases = np.zeros((len(task.labels), x.shape[1])), np.full(len(task.labels), RARE)
    logistic = LogisticRegression(C=10, tol=1e-3, max_iter=1000, class_weight="balanced" if balanced else None)
    if isinstance(task, MultiLabel):
        for label, on in enumerate(labels.T.numpy()):
            if on.any() and not on.all():
                logistic.fit(x, on)
                weights[label], biases[label] = logistic.coef_[0], logistic.intercept_[0]
            elif on.all():
                biases[label] = -RARE
        return weights, biases
    logistic.fit(x, labels.numpy())
    binary = len(logistic.classes_) == 2  # one difference stands for both
    weights[logistic.classes_] = np.concatenate([-logistic.coef_, logistic.coef_]) / 2 if binary else logistic.coef_
    b = logistic.intercept_
    biases[logistic.classes_] = np.concatenate([-b, b]) / 2 if binary else b
    return weights, biases


def loss(task: SingleLabel, logits: Tensor, truth: Tensor) -> float:
    """The mean over the texts of validation, at the temperature that is best for `logits (R, C)`."""
    temperature = fit_temperature(logits, truth) if task.name == "single_label" else 1.0
    return float(task.loss(logits / temperature, truth))


def write_mixed(path: Path, network: Classifier, task: SingleLabel) -> None:
    """Put the network in the place of the one that the checkpoint holds."""
    content = torch.load(path, map_location="cpu", weights_only=True)
    content["heed"] |= {"architecture": dict(network.architecture), "task": task.facts()}
    content["state_dict"] = {f"classifier.{name}": weight.cpu() for name, weight in network.state_dict().items()}
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_whole(path, buffer.getbuffer())
