import numpy as np
import pytest
from datasets import Dataset

from data.near import near_copies, triples_of

WORDS = [f"word{i}" for i in range(1000)]


def article(seed: int, length: int = 200) -> list[str]:
    return np.random.default_rng(seed).choice(WORDS, length).tolist()


def near(texts: list, others: list) -> list[bool]:
    return near_copies(Dataset.from_dict({"text": texts}), Dataset.from_dict({"text": others})).tolist()


def jaccard(a: str, b: str) -> float:
    first, second = set(triples_of(a)), set(triples_of(b))
    return len(first & second) / len(first | second)


def test_a_text_with_a_few_changed_words_is_found_and_another_is_not():
    texts = [" ".join(article(seed)) for seed in range(20)]
    copies = [" ".join(words[:190] + ["other"] * 10) for words in map(article, range(10))]
    assert min(jaccard(text, copy) for text, copy in zip(texts, copies, strict=False)) > 0.85
    assert near(texts, copies) == [True] * 10 + [False] * 10


def test_half_a_text_is_no_near_copy():
    halves = [" ".join(article(seed)[:100]) for seed in range(20)]
    assert not any(near([" ".join(article(seed)) for seed in range(20)], halves))


def test_case_and_blanks_do_not_matter():
    assert near(["One  two three\nfour"], ["one two three four"]) == [True]


@pytest.mark.parametrize("text", ["two words", "word", "深度学习模型的训练", ""])
def test_short_texts_and_scripts_without_blanks_are_compared_by_their_characters(text):
    assert near([text], [text, "something else entirely"]) == [True]
    assert near([text], ["something else entirely"]) == [False]


def test_the_columns_of_a_text_are_compared_together():
    assert near([["a title here", "and its body"]], [["a title here", "and its body"]]) == [True]
