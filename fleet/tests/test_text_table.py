"""What numbers look like: a level, a difference and a relative change of shares are told apart."""

import pytest

from slowpath_fleet.printed import Quantity, Unit
from slowpath_fleet.text_table import difference, measured, relative


@pytest.mark.parametrize(
    ("unit", "value", "level", "change"),
    [
        ("ratio", 0.634, "63.4% (61.5..65.4)", "+63.4 pp (+61.5..+65.4)"),
        ("ms", 0.634, "0.634 ms (0.615..0.654)", "0.634 ms (0.615..0.654)"),
    ],
)
def test_a_level_has_no_sign_a_difference_of_shares_is_in_points_and_a_relative_change_in_percent(
    unit: Unit, value: float, level: str, change: str
) -> None:
    one = Quantity(value, 0.615, 0.654, unit)
    assert (measured(one), difference(one), relative(one)) == (level, change, "+63.4% (+61.5..+65.4)")
    assert relative(Quantity(-0.026, None, None, "ratio")) == "-2.6%"
