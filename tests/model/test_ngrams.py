import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from data.batching import EncodedTexts
from encoding import TokenIds
from evaluation.linear import fit
from model.ngrams import NgramLinear, hashed
from model.task import MultiLabel, Regression, SingleLabel
from padding import pad

RNG = np.random.default_rng(0)
TEXTS = [RNG.integers(5, 25, RNG.integers(1, 12)).tolist() for _ in range(60)]  # token ids; texts of 1 to 11 tokens
NEW = [[5, 6, 7, 5, 6], [24], [99, 98, 5], [30, 31]]  # the last two with tokens that training never showed
N_BUCKETS = 2**18


def encoded(texts: list[list[int]], labels: torch.Tensor) -> EncodedTexts:
    starts = torch.tensor([0, *map(len, texts)]).cumsum(0)
    ids = torch.tensor([i for text in texts for i in text], dtype=torch.int32)
    each = torch.arange(len(texts) + 1)
    return EncodedTexts(TokenIds(ids, starts, each, starts.diff()), labels, pad_id=0)


def logits(ngrams: NgramLinear, texts: list[list[int]]) -> np.ndarray:
    tokens = encoded(texts, torch.zeros(len(texts))).tokens
    ids, mask, _ = pad(tokens, range(len(texts)), pad_id=0)
    return ngrams(ids, mask).numpy()


def tfidf() -> tuple[TfidfVectorizer, object]:
    vectorizer = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"\S+", dtype=np.float32)
    return vectorizer, vectorizer.fit_transform([" ".join(map(str, text)) for text in TEXTS])


def reference(model, vectorizer) -> np.ndarray:
    of = model.decision_function if hasattr(model, "decision_function") else model.predict
    return of(vectorizer.transform([" ".join(map(str, text)) for text in NEW]))


def fitted(task, labels: torch.Tensor, *, balanced: bool = False) -> NgramLinear:
    ngrams = NgramLinear(n_buckets=N_BUCKETS, n_classes=len(task.labels))
    fit(ngrams, encoded(TEXTS, labels), task, balanced=balanced)
    return ngrams


def against_the_others(on: np.ndarray, *, weight: str | None = None) -> np.ndarray:
    """The logits of `NEW` by the formula in Wang and Manning 2012, each column for itself."""
    vectorizer, x = tfidf()
    inside, outside = x.toarray()[on], x.toarray()[~on]
    total_in, total_out = (part.sum() + 0.1 * x.shape[1] for part in (inside, outside))
    ratio = [
        np.log((inside[:, column].sum() + 0.1) / total_in / ((outside[:, column].sum() + 0.1) / total_out))
        for column in range(x.shape[1])
    ]
    model = LogisticRegression(C=30, solver="liblinear", class_weight=weight).fit(x.toarray() * ratio, on)
    return model.decision_function(vectorizer.transform([" ".join(map(str, text)) for text in NEW]).toarray() * ratio)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_class_has_scikit_learns_logistic_regression_on_tfidf_times_the_log_count_ratio(n_classes, balanced):
    labels = torch.arange(60) % 7 % n_classes
    weight = "balanced" if balanced else None
    expected = np.stack([against_the_others((labels == c).numpy(), weight=weight) for c in range(n_classes)], axis=1)
    found = logits(fitted(SingleLabel(labels=list("abc"[:n_classes])), labels, balanced=balanced), NEW)
    np.testing.assert_allclose(found, expected, atol=1e-2)  # both stop at a small slope


def test_of_several_labels_each_has_a_regression_of_its_own_and_one_that_all_or_none_have_is_sure():
    labels = torch.stack([torch.arange(60) % 3 == 0, torch.ones(60) > 0, torch.zeros(60) > 0], dim=1)
    found = logits(fitted(MultiLabel(labels=["a", "b", "c"]), labels), NEW)
    np.testing.assert_allclose(found[:, 0], against_the_others(labels[:, 0].numpy()), atol=1e-2)
    assert (found[:, 1] == 10).all()
    assert (found[:, 2] == -10).all()


def test_of_scores_it_is_ridge_regression():
    labels = torch.linspace(10, 90, 60)[torch.randperm(60, generator=torch.Generator().manual_seed(0))]
    vectorizer, x = tfidf()
    model = Ridge().fit(x, labels.numpy())
    task = Regression(labels=["score"], mean=float(labels.mean()), spread=float(labels.std()))
    found = task.probabilities(torch.from_numpy(logits(fitted(task, labels), NEW)))[:, 0]
    np.testing.assert_allclose(found, reference(model, vectorizer), rtol=1e-3)


def test_a_text_alone_has_the_logits_it_has_among_longer_ones():
    ngrams = fitted(SingleLabel(labels=["a", "b", "c"]), torch.arange(60) % 3)
    together = logits(ngrams, TEXTS)
    alone = np.concatenate([logits(ngrams, [text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_what_the_tokens_add_sums_up_to_the_logits():
    ngrams = fitted(SingleLabel(labels=["a", "b", "c"]), torch.arange(60) % 3)
    ids, mask, _ = pad(encoded(TEXTS, torch.zeros(60)).tokens, range(60), pad_id=0)
    added = ngrams.by_token(ids, mask)
    assert added.shape == (*ids.shape, 3)
    assert (added[~mask] == 0).all()
    torch.testing.assert_close(added.sum(1) + ngrams.bias, ngrams(ids, mask))


def test_a_pair_is_hashed_in_its_order_and_never_over_padding():
    ids, mask = torch.tensor([[7, 8, 0], [8, 7, 9]]), torch.tensor([[True, True, False], [True, True, True]])
    buckets, real = hashed(ids, mask, N_BUCKETS)
    assert buckets[:, :3].tolist() == ids.tolist()
    assert real.tolist() == [[True, True, False, False, True, False], [True, True, True, False, True, True]]
    assert buckets[0, 4] == (8 * 2_654_435_761 + 8) % N_BUCKETS  # (7 + 1) · the multiplier + 8
    assert buckets[1, 4] != buckets[0, 4]


def test_of_some_rows_only_these_are_fitted():
    labels = torch.arange(60) % 3
    some = np.arange(0, 60, 2)
    ngrams = NgramLinear(n_buckets=N_BUCKETS, n_classes=3)
    fit(ngrams, encoded(TEXTS, labels), SingleLabel(labels=["a", "b", "c"]), rows=some, balanced=False)
    alone = NgramLinear(n_buckets=N_BUCKETS, n_classes=3)
    texts = encoded([TEXTS[row] for row in some], labels[some])
    fit(alone, texts, SingleLabel(labels=["a", "b", "c"]), balanced=False)
    torch.testing.assert_close(ngrams.weight, alone.weight)
    torch.testing.assert_close(ngrams.idf, alone.idf)
