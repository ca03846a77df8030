"""The log-bucket histogram that all engines agree on.

A value x > 0 falls into bin ceil(ln x / ln 1.02), so bin b holds (1.02^(b-1), 1.02^b] and its centre
2 * 1.02^b / 2.02 is within 0.99 % of everything in it (Masson, Rim, Lee: DDSketch, VLDB 2019). Zero, and what is
smaller than the first bin, has a bin of its own.

Beside its bin a row carries its *place* in it, 0..255 on the log scale. Cells add up bins and places as integers,
so they merge exactly and are the same in every engine whatever the order of addition.
"""

from __future__ import annotations

import math
from typing import Final

GAMMA: Final = 1.02
LN_GAMMA: Final = math.log(GAMMA)
# Bin of zero and of everything below 1.02^-1400 = 9e-13.
ZERO_BIN: Final = -1400
PLACES: Final = 256
# Fine bins in a coarse one, which serve for variances only: 1.02^8 = 1.17.
COARSE: Final = 8


def bin_of(value: float) -> int:
    """Bin of a value >= 0."""
    if value <= GAMMA**ZERO_BIN:
        return ZERO_BIN
    return math.ceil(math.log(value) / LN_GAMMA)


def place_of(value: float) -> int:
    """Place of a value in its bin, 0..255 from its lower to its upper edge, on the log scale."""
    at = bin_of(value)
    if at == ZERO_BIN:
        return 0
    return min(PLACES - 1, max(0, math.floor((math.log(value) / LN_GAMMA - (at - 1)) * PLACES)))


def upper_edge(at: int) -> float:
    """Largest value of a bin."""
    return 0.0 if at == ZERO_BIN else GAMMA**at


def bin_sql(value: str) -> str:
    """DuckDB expression for `bin_of`; made once at ingest, so that no engine computes a logarithm of its own."""
    return (
        f"(CASE WHEN {value} <= {GAMMA**ZERO_BIN!r} THEN {ZERO_BIN} "
        f"ELSE ceil(ln({value}) / {LN_GAMMA!r}) END)::SMALLINT"
    )


def place_sql(value: str) -> str:
    """DuckDB expression for `place_of`."""
    scaled = f"ln({value}) / {LN_GAMMA!r}"
    return (
        f"(CASE WHEN {value} <= {GAMMA**ZERO_BIN!r} THEN 0 "
        f"ELSE least({PLACES - 1}, greatest(0, floor(({scaled} - (ceil({scaled}) - 1)) * {PLACES}))) END)::UTINYINT"
    )
