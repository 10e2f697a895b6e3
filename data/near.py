"""Texts that are nearly in another split: MinHash (Broder 1997, doi:10.1109/SEQUEN.1997.666900) by the library `rensa`.

R texts, S texts of the other split.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from datasets import Dataset
from rensa import RMinHash, RMinHashLSH

from encoding import plain

SIMILAR = 0.8  # share of the word triples of two texts that they have in common
HASHES, BANDS = 128, 16  # with eight hashes a band, 95 % of the pairs at the limit become candidates
READ = 2000  # words of a text that are compared
INDEXED = 20_000  # texts of the other split indexed at a time, so that memory stays bounded


def near_copies(texts: Dataset, others: Dataset) -> np.ndarray:
    """Say which of `texts` are at least 80 % alike to one of `others`: `(R,)` bool. Both have the column `text`."""
    digests = [digest for batch in triples(texts) for digest in RMinHash.from_token_sets(batch, HASHES, 0)]
    found = np.zeros(len(digests), bool)
    for batch in triples(others):
        known = RMinHash.from_token_sets(batch, HASHES, 0)
        index = RMinHashLSH(SIMILAR, HASHES, BANDS)
        index.insert_many(known, 0)
        for row, candidates in enumerate(index.query_all(digests)):
            found[row] |= any(digests[row].jaccard(known[other]) >= SIMILAR for other in candidates)
    return found


def triples(texts: Dataset) -> Iterator[list[list[str]]]:
    """The word triples of the texts, some thousand texts at a time."""
    for batch in texts.select_columns("text").iter(INDEXED):
        yield [triples_of(plain(text)) for text in batch["text"]]


def triples_of(text: str) -> list[str]:
    """Every three words in a row; of fewer words (or a script without blanks) every five characters, or the whole."""
    words = text.lower().split()[:READ]
    if len(words) >= 3:
        return [" ".join(words[i : i + 3]) for i in range(len(words) - 2)]
    characters = " ".join(words)[: 5 * READ]
    return [characters[i : i + 5] for i in range(max(1, len(characters) - 4))]
