import itertools

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from encoding import CLS, PAD, SEP, SPECIAL_TOKENS, UNK, TokenIds, encode
from errors import UserError
from padding import cut_by_budget, pad, recurring

VOCABULARY = {token: i for i, token in enumerate([*SPECIAL_TOKENS, "one", "two", "three", "[", "]", "pad"])}


@pytest.fixture
def tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def rows(tokenizer: Tokenizer, texts: list[str], max_len: int = 10, truncation: str = "head") -> list[list[str]]:
    tokens = encode(tokenizer, texts, max_len=max_len, truncation=truncation)
    ends = tokens.pieces.tolist()
    return [
        [tokenizer.id_to_token(i) for i in tokens.ids[start:end].tolist()] for start, end in itertools.pairwise(ends)
    ]


def test_texts_lie_one_after_the_other_in_one_flat_tensor(tokenizer):
    tokens = encode(tokenizer, ["one two", "three"], max_len=10)
    assert tokens.ids.tolist() == [2, 5, 6, 3, 2, 7, 3]
    assert tokens.ids.dtype == torch.int32
    assert tokens.pieces.tolist() == [0, 4, 7]
    assert tokens.texts.tolist() == [0, 1, 2]
    assert tokens.n_tokens.tolist() == [4, 3]


def test_more_texts_than_a_chunk_keep_their_order(tokenizer):
    words = ["one", "two", "three"] * 1000
    assert [row[1] for row in rows(tokenizer, words)] == words


@pytest.mark.parametrize("text", ["", "   ", "\t\n"])
def test_a_text_without_tokens_becomes_one_unknown(tokenizer, text):
    assert rows(tokenizer, [text, "one"]) == [[CLS, UNK, SEP], [CLS, "one", SEP]]


def test_truncation_keeps_the_beginning_and_the_closing_token_and_the_whole_length_is_told(tokenizer):
    assert rows(tokenizer, ["one two three one"], max_len=5) == [[CLS, "one", "two", "three", SEP]]
    assert encode(tokenizer, ["one two three one", "one two three"], max_len=5).n_tokens.tolist() == [6, 5]


LONG = "one two three one two three one"


def test_head_and_tail_keep_a_quarter_of_the_room_for_the_beginning(tokenizer):
    assert rows(tokenizer, [LONG], 6, "head_tail") == [[CLS, "one", "two", "three", "one", SEP]]
    assert rows(tokenizer, ["one two"], 6, "head_tail") == [[CLS, "one", "two", SEP]]


def test_windows_cover_the_whole_text_in_pieces_of_one_length(tokenizer):
    pieces = [[CLS, "one", "two", "three", SEP], [CLS, "one", "two", "three", SEP], [CLS, "two", "three", "one", SEP]]
    assert rows(tokenizer, [LONG, "one"], 5, "windows") == [*pieces, [CLS, "one", SEP]]
    tokens = encode(tokenizer, [LONG, "one", "one two three one two three"], max_len=5, truncation="windows")
    assert tokens.texts.tolist() == [0, 3, 4, 6]
    assert tokens.lengths.tolist() == [15, 3, 10]
    assert tokens.n_tokens.tolist() == [9, 3, 8]
    ids, mask, text = pad(tokens, [1, 0], pad_id=0)
    assert text.tolist() == [0, 1, 1, 1]
    assert ids[1:].flatten().tolist() == tokens.ids[:15].tolist()
    assert mask.sum(dim=1).tolist() == [3, 5, 5, 5]


def test_the_parts_of_a_text_are_joined_by_the_closing_token_and_cut_the_longest_first(tokenizer):
    pair = ["one two", "three one two three"]
    assert rows(tokenizer, [pair], 20) == [[CLS, "one", "two", SEP, "three", "one", "two", "three", SEP]]
    assert rows(tokenizer, [pair], 8) == [[CLS, "one", "two", SEP, "three", "one", "two", SEP]]
    assert rows(tokenizer, [pair[::-1]], 8) == [[CLS, "three", "one", "two", SEP, "one", "two", SEP]]
    assert rows(tokenizer, [["", "one"], ["", ""]], 8) == [[CLS, SEP, "one", SEP], [CLS, UNK, SEP, SEP]]
    assert encode(tokenizer, [pair], max_len=8).n_tokens.tolist() == [9]


def test_windows_of_a_text_of_parts_each_begin_with_the_earlier_parts(tokenizer):
    pair = ["one", "three one two three one"]
    start = [CLS, "one", SEP]
    expected = [[*start, "three", "one", SEP], [*start, "two", "three", SEP], [*start, "three", "one", SEP]]
    assert rows(tokenizer, [pair], 6, "windows") == expected


def test_an_unknown_truncation_is_answered_with_the_known_ones(tokenizer):
    with pytest.raises(UserError, match="truncation=tail is unknown: choose one of head, head_tail, windows"):
        encode(tokenizer, ["one"], max_len=5, truncation="tail")


@pytest.mark.parametrize("text", ["🜁", "漢字", "\ud83d"])
def test_unseen_characters_and_lone_surrogates_are_unknown(tokenizer, text):
    assert rows(tokenizer, [text]) == [[CLS, UNK, SEP]]


def test_a_special_token_spelled_in_a_text_is_text(tokenizer):
    assert PAD not in rows(tokenizer, ["one [PAD] two"])[0]


@pytest.mark.parametrize("text", [None, 7, float("nan"), b"one"])
def test_what_is_no_string_is_refused_with_its_place(tokenizer, text):
    with pytest.raises(UserError, match="text 2 is "):
        encode(tokenizer, ["one", text], max_len=10)


def test_no_text_gives_no_row(tokenizer):
    tokens = encode(tokenizer, [], max_len=10)
    assert (len(tokens.ids), tokens.pieces.tolist(), tokens.texts.tolist()) == (0, [0], [0])


def test_padding_is_to_the_longest_and_the_mask_is_true_on_real_tokens(tokenizer):
    tokens = encode(tokenizer, ["one two", "three", ""], max_len=10)
    ids, mask, text = pad(tokens, [2, 0], pad_id=0)
    assert text.tolist() == [0, 1]
    assert ids.tolist() == [[2, 1, 3, 0], [2, 5, 6, 3]]
    assert mask.tolist() == [[True, True, True, False], [True] * 4]
    assert (ids.dtype, mask.dtype) == (torch.int64, torch.bool)


def test_batches_fill_the_budget_and_never_exceed_it():
    lengths = np.array([1, 1, 2, 2, 3, 9, 20])
    ends = cut_by_budget(lengths, max_tokens=9)
    assert ends == [4, 5, 6, 7]
    for start, end in zip([0, *ends], ends, strict=False):
        assert (end - start) * lengths[end - 1] <= 9 or end - start == 1


def test_lengths_that_recur_are_four_an_octave():
    lengths = np.arange(1, 521)
    rounded = recurring(lengths)
    assert rounded[[0, 15, 16, 17, 31, 32, 63, 64, 127, 128, 255, 256]].tolist() == [
        *(1, 16, 20, 20, 32, 40, 64, 80, 128, 160, 256, 320)
    ]
    assert (rounded >= lengths).all()
    assert (rounded < lengths * 1.25).all()
    assert len(np.unique(rounded[16:512])) == 20
    assert (recurring(rounded) == rounded).all()


def test_padding_to_a_length_that_recurs_stops_at_the_limit():
    tokens = TokenIds(torch.arange(17, dtype=torch.int32), torch.tensor([0, 17]), torch.arange(2), torch.tensor([17]))
    for limit, width in ((None, 17), (64, 20), (17, 17)):
        ids, mask, _ = pad(tokens, [0], pad_id=0, limit=limit)
        assert ids.shape == mask.shape == (1, width)
        assert mask.sum() == 17


def test_robertas_tokenizers_put_two_separators_between_parts():
    """As `transformers.RobertaTokenizer` writes a pair: `<s> A </s></s> B </s>`."""
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "one", "two", "three"]
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    pair = [["one two three", "two"]]
    assert rows(tokenizer, pair) == [["<s>", "one", "two", "three", "</s>", "</s>", "two", "</s>"]]
    assert rows(tokenizer, pair, 7) == [["<s>", "one", "two", "</s>", "</s>", "two", "</s>"]]
    assert encode(tokenizer, pair, max_len=7).n_tokens.tolist() == [8]
    assert rows(tokenizer, ["one"]) == [["<s>", "one", "</s>"]]
