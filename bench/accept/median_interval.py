"""The median of a few values, and between which of them the true one lies: the sign test, which asks nothing of their distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

LEVEL = 0.95


@dataclass(frozen=True)
class MedianInterval:
    """A median with two order statistics that hold the true one with a chance of at least `LEVEL`."""

    value: float
    low: float
    high: float
    held: float
    """With what chance they do: below `LEVEL` where there are too few values, and these are the outermost then."""


def median_interval(values: list[float]) -> MedianInterval:
    """Of values that are independent of each other; at least one."""
    ordered, count = sorted(values), len(values)

    def held(rank: int) -> float:
        return 1 - 2 * sum(math.comb(count, below) for below in range(rank + 1)) / 2**count

    rank = max((rank for rank in range(count // 2) if held(rank) >= LEVEL), default=0)
    return MedianInterval(median(ordered), ordered[rank], ordered[-1 - rank], max(held(rank), 0.0))
