import warnings

import torch

from evaluation.explanation import coloured_tokens, draw_attention, strongest_tokens
from model.explain import Attribution

RESULT = Attribution("sport", ["[CLS]", "goal", "rate", "the"], torch.tensor([0.0, 2.0, -1.0, 0.01]), 1.01)


def test_the_stronger_a_token_the_deeper_its_colour():
    line = coloured_tokens(RESULT)
    assert line.plain == "[CLS] goal rate the "
    styles = {line.plain[span.start : span.end]: span.style for span in line.spans}
    assert styles["goal"] == "white on rgb(0,160,0)"
    assert styles["rate"] == "white on rgb(80,0,0)"
    assert styles.get("the", "") == ""


def test_the_strongest_tokens_are_named_on_both_sides():
    assert strongest_tokens(RESULT) == "for sport: goal +2.00, the +0.01; against: rate -1.00"
    nothing = Attribution("sport", ["[CLS]"], torch.zeros(1), 0.0)
    assert strongest_tokens(nothing) == "for sport: -; against: -"


def test_a_picture_is_drawn_of_any_token_and_of_a_long_text(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for tokens in (["$", "$x$", "漢", "🜁"], ["word"] * 500):
            maps = torch.rand(2, 3, len(tokens), len(tokens)).softmax(dim=-1)
            draw_attention(tokens, maps, tmp_path / "picture.png")
            assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
