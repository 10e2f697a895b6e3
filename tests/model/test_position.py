import math

import pytest

from model.position import sinusoidal_table


@pytest.mark.parametrize("d_model", [1, 8, 33])
def test_sinusoidal_table_equals_the_formula(d_model):
    table = sinusoidal_table(40, d_model)
    assert table.shape == (40, d_model)
    for position in (0, 1, 39):
        for column in range(d_model):
            angle = position / 10000 ** ((column - column % 2) / d_model)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[position, column].item() == pytest.approx(expected, abs=1e-5)
