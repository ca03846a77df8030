"""Quantiles before and after a change, with the error that its test has: of users, and of whole days. Pure.

The test is of shares, day of the week by day of the week (`change_point`); here all days of a side are taken together.
"""

from __future__ import annotations

from .. import clustered
from ..clustered import QuantileEstimate
from .change_point import Daily, Split, day_scatter
from .series import Cells


def levels(
    cells: Cells, daily: Daily, quantile: float, split: Split, days: tuple[int, int, int]
) -> tuple[QuantileEstimate, QuantileEstimate]:
    """Before and after; `days`: the first one before the change, the first one after it, and the one after the last.

    `daily` is the series in which `split` was found.
    """
    a, at, b = days
    before, after = (
        clustered.quantile(
            cells.histogram(*part),
            cells.grouped(*part),
            quantile,
            days=day_scatter(daily, split, part, 1 - quantile),
        )
        for part in ((a, at), (at, b))
    )
    return before, after
