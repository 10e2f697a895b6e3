import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch import nn

from encoding import SPECIAL_TOKENS, TokenIds, special_id
from tests.conftest import QUICK
from training import token_vectors
from training.assembly import make_data, make_module
from training.token_vectors import add_token_vectors, near_counts, positive_information, running


def token_ids(*texts: list[list[int]]) -> TokenIds:
    """Each text a list of pieces, each piece a list of ids."""
    pieces = [piece for text in texts for piece in text]
    return TokenIds(
        ids=torch.tensor([number for piece in pieces for number in piece], dtype=torch.int32),
        pieces=torch.tensor([0, *np.cumsum([len(piece) for piece in pieces])]),
        texts=torch.tensor([0, *np.cumsum([len(text) for text in texts])]),
        n_tokens=torch.tensor([sum(map(len, text)) for text in texts]),
    )


def test_the_texts_that_are_asked_for_run_on_without_special_tokens():
    tokens = token_ids([[2, 7, 8, 3]], [[2, 9, 3], [2, 5, 3]], [[2, 6, 7, 3]])
    ids, piece = running(tokens, None, special=[0, 1, 2, 3, 4])
    assert (ids.tolist(), piece.tolist()) == ([7, 8, 9, 5, 6, 7], [0, 0, 1, 2, 3, 3])
    ids, piece = running(tokens, np.array([2, 1]), special=[0, 1, 2, 3, 4])
    assert (ids.tolist(), piece.tolist()) == ([9, 5, 6, 7], [1, 2, 3, 3])


def test_of_many_tokens_every_so_manyeth_text_is_looked_at(monkeypatch):
    monkeypatch.setattr(token_vectors, "MOST_TOKENS", 3)
    tokens = token_ids([[5, 6]], [[7, 8]], [[9, 5]], [[6, 7]])
    ids, _ = running(tokens, None, special=[])
    assert ids.tolist() == [5, 6, 6, 7]
    ids, _ = running(tokens, np.array([0, 1, 2]), special=[])  # of the texts asked for, not of all
    assert ids.tolist() == [5, 6, 9, 5]


def test_near_are_tokens_of_one_piece_within_the_window():
    generator = np.random.default_rng(0)
    ids, piece = generator.integers(0, 6, 200), np.sort(generator.integers(0, 12, 200))
    expected = np.zeros((6, 6))
    for i in range(200):
        for j in range(200):
            if i != j and abs(i - j) <= token_vectors.NEAR and piece[i] == piece[j]:
                expected[ids[i], ids[j]] += 1
    np.testing.assert_array_equal(near_counts(ids, piece, vocab_size=6).toarray(), expected)


def test_information_is_by_how_much_a_pair_is_oftener_than_chance():
    counts = np.array([[0.0, 8.0, 1.0], [8.0, 2.0, 0.0], [1.0, 0.0, 0.0]])
    either, neighbour = counts.sum(axis=1) / counts.sum(), counts.sum(axis=1) ** 0.75
    chance = np.outer(either, neighbour / neighbour.sum())
    with np.errstate(divide="ignore"):
        expected = np.maximum(np.log(counts / counts.sum() / chance), 0)
    found = positive_information(csr_matrix(counts)).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert (found > 0).any()


def test_vectors_are_the_singular_vectors_and_zero_where_nothing_is_near():
    generator = np.random.default_rng(0)
    texts = [[[int(number) for number in generator.integers(5, 25, 12)]] for _ in range(30)]
    tokens = token_ids(*texts, [[30]])
    vectors = token_vectors.token_vectors(tokens, rows=None, special=[0, 1, 2, 3, 4], vocab_size=40, d_model=50, seed=0)
    information = positive_information(near_counts(*running(tokens, None, special=[]), vocab_size=40)).toarray()
    left, values, _ = np.linalg.svd(information.astype(float))
    expected = left[:, values > 1e-9]
    seen = vectors[5:25].double()
    assert vectors.shape == (40, 50)
    assert (vectors[:5] == 0).all()
    assert (vectors[25:] == 0).all()
    assert float(vectors[5:25, : expected.shape[1]].std()) == pytest.approx(token_vectors.STD, rel=0.01)
    found, wanted = seen @ seen.T, torch.from_numpy(expected @ expected.T)[5:25, 5:25]
    torch.testing.assert_close(found / found.trace(), wanted / wanted.trace(), atol=1e-5, rtol=1e-4)


def test_tokens_that_stand_near_the_same_others_are_alike():
    texts = [[[5, thing, 6, verb]] for thing, verb in ((7, 10), (8, 10), (9, 11)) for _ in range(5)]
    vectors = token_vectors.token_vectors(token_ids(*texts), rows=None, special=[], vocab_size=12, d_model=3, seed=0)
    like, unlike = (torch.cosine_similarity(vectors[7], vectors[other], dim=0) for other in (8, 9))
    assert like > 0.99 > unlike + 0.5


def test_a_network_begins_with_them_where_that_is_asked_for(configure, corpus):
    weights, more = {}, ("data=files", f"data.train={corpus}", *QUICK)
    for on in ("true", "false"):
        config = configure(*more, f"token_vectors={on}")
        data = make_data(config)
        weights[on] = make_module(config, data).classifier.encoder.embedding.weight
    embedding = nn.Embedding(*weights["false"].shape, _weight=weights["false"].detach().clone())
    add_token_vectors(embedding, data)
    torch.testing.assert_close(weights["true"], embedding.weight)
    special = [special_id(data.tokenizer, token) for token in SPECIAL_TOKENS]
    torch.testing.assert_close(weights["true"][special], weights["false"][special], rtol=0, atol=0)
    assert not torch.equal(weights["true"], weights["false"])
