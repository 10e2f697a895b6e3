import math

import pytest
import torch

from errors import UserError
from model.position import (
    AlibiPosition,
    LearnedPosition,
    RotaryPosition,
    SinusoidalPosition,
    alibi_slopes,
    sinusoidal_table,
)

SIZES = {"d_model": 16, "n_heads": 2, "d_head": 8, "max_len": 10}


@pytest.mark.parametrize("d_model", [1, 8, 33])
def test_sinusoidal_table_equals_the_formula(d_model):
    table = sinusoidal_table(40, d_model)
    assert table.shape == (40, d_model)
    for position in (0, 1, 39):
        for column in range(d_model):
            angle = position / 10000 ** ((column - column % 2) / d_model)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[position, column].item() == pytest.approx(expected, abs=1e-5)


def test_sinusoidal_positions_go_beyond_max_len():
    position = SinusoidalPosition(**SIZES)
    torch.testing.assert_close(position(torch.zeros(1, 30, 16))[0], 0.02 * 2**0.5 * sinusoidal_table(30, 16))


def test_learned_positions_are_the_rows_of_a_table_and_end_at_max_len():
    position = LearnedPosition(**SIZES)
    torch.testing.assert_close(position(torch.ones(2, 4, 16))[1], 1 + position.embedding.weight[:4])
    assert position.longest == 10
    with pytest.raises(UserError, match=r"11 tokens, but learned positions end at max_len=10"):
        position(torch.zeros(1, 11, 16))


def test_rotary_turns_pairs_by_the_angle_of_the_formula():
    torch.manual_seed(0)
    heads = torch.randn(1, 2, 12, 8)
    turned = RotaryPosition(**SIZES).rotate(heads)
    for place in (0, 1, 11):
        for i in range(4):
            angle = place / 10000 ** (2 * i / 8)
            pair = complex(heads[0, 1, place, i], heads[0, 1, place, i + 4]) * complex(math.cos(angle), math.sin(angle))
            assert turned[0, 1, place, i].item() == pytest.approx(pair.real, abs=1e-5)
            assert turned[0, 1, place, i + 4].item() == pytest.approx(pair.imag, abs=1e-5)


def test_rotary_scores_depend_on_the_distance_only():
    torch.manual_seed(0)
    q, k = (torch.randn(8).expand(1, 2, 20, 8) for _ in range(2))
    rotate = RotaryPosition(**SIZES).rotate
    scores = (rotate(q) @ rotate(k).mT)[0, 0]  # (20, 20)
    for distance in (-7, 0, 3):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=1e-4)
    assert scores[0, 3] != pytest.approx(scores[0, 7].item(), abs=1e-3)


def test_rotary_follows_the_heads_own_width():
    heads = torch.randn(1, 2, 5, 12)
    turned = RotaryPosition(**{**SIZES, "d_head": 12}).rotate(heads)
    torch.testing.assert_close(turned.norm(dim=-1), heads.norm(dim=-1))
    assert turned[0, 0, 1, 1].item() == pytest.approx(
        float(heads[0, 0, 1, 1] * math.cos(10000 ** (-2 / 12)) - heads[0, 0, 1, 7] * math.sin(10000 ** (-2 / 12))),
        abs=1e-5,
    )


def test_rotary_wants_an_even_width():
    with pytest.raises(UserError, match=r"d_head=7 .* is odd"):
        RotaryPosition(d_model=14, n_heads=2, d_head=7, max_len=10)


def test_alibis_slopes_for_eight_and_for_six_heads():
    assert alibi_slopes(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert alibi_slopes(6) == [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]
    assert alibi_slopes(1) == [1 / 256]


def test_alibi_takes_the_distance_both_ways_and_hides_padding():
    visible = torch.tensor([True, True, True, False])[None, None, None, :]
    bias = AlibiPosition(**SIZES).bias(visible)  # slopes 1/16 and 1/256
    assert bias.shape == (1, 2, 4, 4)
    assert bias[0, 0, 0].tolist() == [0, -1 / 16, -2 / 16, -math.inf]
    assert bias[0, 0, 2].tolist() == [-2 / 16, -1 / 16, 0, -math.inf]
    assert bias[0, 1, 2, 0] == -2 / 256


def test_a_table_that_another_thread_makes_shorter_meanwhile_does_no_harm():
    class Raced(SinusoidalPosition):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "table":  # the other thread's comes right after
                super().__setattr__(name, value[:2])

    position = Raced(d_model=16, n_heads=2, d_head=8, max_len=4)
    expected = position.scale * sinusoidal_table(100, 16)
    torch.testing.assert_close(position(torch.zeros(1, 100, 16))[0], expected)
