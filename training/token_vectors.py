"""Vectors of tokens that say which others stand near them in the training texts, for a network to begin with.

N tokens, V vocab_size, D d_model, n vectors' width before it is filled up to D.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.utils.extmath import randomized_svd
from torch import Tensor, nn

from data.datamodule import TextDataModule
from encoding import CLS, PAD, SEP, UNK, TokenIds, special_id
from evaluation.baseline import stride

NEAR = 10  # tokens to either side that count as near
SMOOTHING = 0.75  # the power of a neighbour's frequency, so that rare ones do not stand out
STD = 0.1  # of the vectors' numbers
MOST_TOKENS = 2_000_000  # that are looked at
NOTHING = 1e-4  # a singular value below this share of the largest is rounding
ITERATIONS = 2  # of the randomised decomposition (Halko et al. 2011, arXiv:0909.4061): exact is not needed


@torch.no_grad()
def add_token_vectors(embedding: nn.Embedding, data: TextDataModule) -> None:
    """Let tokens that stand near the same others in the training texts begin with similar vectors."""
    vocab_size, d_model = embedding.weight.shape
    special = [special_id(data.tokenizer, token) for token in (PAD, UNK, CLS, SEP)]
    tokens = data.encoded["train"].tokens
    embedding.weight += token_vectors(
        tokens, rows=data.train_rows, special=special, vocab_size=vocab_size, d_model=d_model, seed=data.seed
    )


def token_vectors(
    tokens: TokenIds, *, rows: np.ndarray | None, special: list[int], vocab_size: int, d_model: int, seed: int
) -> Tensor:
    """Return `(V, D)`, from the texts `rows` (None: all): the singular vectors of the positive pointwise mutual information of
    neighbours, each of spread one (Levy and Goldberg 2014, "Neural Word Embedding as Implicit Matrix Factorization"; Levy et
    al. 2015, doi:10.1162/tacl_a_00134). Zero for what is `special` or has no neighbours.
    """
    information = positive_information(
        near_counts(*running(tokens, rows, special=special), vocab_size=vocab_size)
    )  # (V, V)
    vectors, known = torch.zeros(vocab_size, d_model), information.getnnz(axis=1) > 0
    if known.any():
        found, values, _ = randomized_svd(information, min(d_model, vocab_size), n_iter=ITERATIONS, random_state=seed)
        found = found[:, values > NOTHING * values[0]] * known[:, None]  # (V, n)
        vectors[:, : found.shape[1]] = torch.from_numpy(found * (STD / found[known].std()))
    return vectors


def running(tokens: TokenIds, rows: np.ndarray | None, *, special: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The token ids of the texts `rows` without the `special` ones, one after the other, and of which piece each is: `(N,)`."""
    sizes = tokens.pieces[tokens.texts].diff().numpy()  # of each text, in tokens
    rows = np.arange(len(sizes)) if rows is None else rows
    chosen = np.zeros(len(sizes), bool)
    chosen[rows[:: stride(int(sizes[rows].sum()), MOST_TOKENS)]] = True
    pieces = np.repeat(chosen, tokens.texts.diff().numpy())  # which of all pieces
    lengths = tokens.pieces.diff().numpy()
    taken = np.repeat(pieces, lengths)
    ids, piece = tokens.ids.numpy()[taken], np.repeat(np.arange(len(lengths)), lengths)[taken]
    usual = ~np.isin(ids, special)
    return ids[usual], piece[usual]


def near_counts(ids: np.ndarray, piece: np.ndarray, *, vocab_size: int) -> csr_matrix:
    """How often two tokens of one piece stand at most `NEAR` apart, `(V, V)`, in either order."""
    counts = csr_matrix((vocab_size, vocab_size), dtype=np.float32)
    for apart in range(1, min(NEAR, len(ids) - 1) + 1):
        both = piece[apart:] == piece[:-apart]
        pairs = (ids[:-apart][both], ids[apart:][both])
        counts += csr_matrix((np.ones(len(pairs[0]), np.float32), pairs), shape=counts.shape)
    return (counts + counts.T).tocsr()


def positive_information(counts: csr_matrix) -> csr_matrix:
    """How much oftener than by chance the two stand near each other, ln P(v, w) / (P(v) P(w)), zero where it is less."""
    pairs, totals = counts.tocoo(), np.asarray(counts.sum(axis=1))[:, 0]  # (V,)
    smoothed = totals**SMOOTHING
    information = np.log(pairs.data * (smoothed.sum() / (totals[pairs.row] * smoothed[pairs.col])))
    found = csr_matrix((np.maximum(information, 0), (pairs.row, pairs.col)), shape=counts.shape)
    found.eliminate_zeros()
    return found
