"""Which version a change came with: read from rows of the days around it, and only where there is a change."""

from __future__ import annotations

from typing import Any

import ibis
import numpy as np

from ..bins import COARSE
from ..cells import COARSE_OFFSET, value_of
from ..engine import Engine
from ..histogram import Floats
from ..identity import GROUPS
from .change_point import Daily, influence, share, variance
from .series import Day

VERSION = "version"
# A version came with a change if its share of launches rose by this much.
FEWEST_RISE = 0.05
# Standard errors by which its launches differ from those before, and from those of other versions after.
SURE_OF_TIME, SURE_OF_VERSION = 3.0, 2.0
# Launches of the other versions after the change, below which they are no comparison.
FEWEST_LAUNCHES = 100


def version_of(
    engine: Engine,
    metric: str,
    where: dict[str, str],
    threshold: int,
    days: tuple[Day, Day, Day],
    shift: float,
) -> str | None:
    """The version that a change came with; None where no version did.

    `threshold` is the last coarse bin that is not slow; `days`: first day before the change, first day after it, and
    the day after the last one; `shift` the change of the share of slow launches.
    """
    first, at, end = (one.astype(object) for one in days)
    rows: Any = engine.rows()
    if VERSION not in rows.columns:
        return None
    rows = rows.filter(rows.metric == metric, rows.day >= first, rows.day < end, value_of(rows, "robot") != "true")
    for column, value in where.items():
        rows = rows.filter(value_of(rows, column) == value)
    rows = rows.filter(rows.user_bucket.notnull())
    coarse = ((rows.bin.cast("int32") + COARSE_OFFSET) / COARSE).floor().cast("int16")
    rows = rows.mutate(
        version_=value_of(rows, VERSION),
        after_=ibis.ifelse(rows.day >= at, 1, 0).cast("int32"),
        group_=(rows.user_bucket % GROUPS).cast("int32"),
        slow_=ibis.ifelse(coarse > threshold, rows.weight, 0),
    )
    table = engine.fetch(
        rows.group_by(["version_", "after_", "group_"]).agg(
            n=rows.weight.sum().cast("float64"), k=rows.slow_.sum().cast("float64")
        )
    )
    names, number = np.unique(np.asarray(table["version_"].to_pylist(), object).astype(str), return_inverse=True)
    at_cell = (number * 2 + np.asarray(table["after_"].to_numpy(), np.int64)) * GROUPS
    at_cell = at_cell + np.asarray(table["group_"].to_numpy(), np.int64)
    shape = (len(names), 2, GROUPS)
    size = len(names) * 2 * GROUPS
    launches, slow = (
        np.asarray(np.bincount(at_cell, table[name].to_numpy(), size), np.float64).reshape(shape) for name in ("n", "k")
    )
    return chosen([str(one) for one in names], launches, slow, shift)


def chosen(names: list[str], launches: Floats, slow: Floats, shift: float) -> str | None:
    """The version whose launches rose in share and differ as the change does; counts are [version, after, group]."""
    total = launches.sum(axis=(0, 2))
    if min(total) <= 0 or len(names) < 2:
        return None
    sign = 1.0 if shift > 0 else -1.0
    before = Daily(launches[:, 0], slow[:, 0])
    best: tuple[float, str] | None = None
    for at, name in enumerate(names):
        parts = launches[at].sum(1) / total
        own = Daily(launches[at, 1:2], slow[at, 1:2])
        if parts[1] - parts[0] < FEWEST_RISE or own.launches.sum() < FEWEST_LAUNCHES:
            continue
        rest = np.arange(len(names)) != at
        others = Daily(launches[rest, 1], slow[rest, 1])
        if sign * clearness(own, before) < SURE_OF_TIME:
            continue
        if others.launches.sum() >= FEWEST_LAUNCHES and sign * clearness(own, others) < SURE_OF_VERSION:
            continue
        explained = float(parts[1] * (share(own) - share(before)) * sign)
        if best is None or explained > best[0]:
            best = (explained, name)
    return best[1] if best is not None else None


def clearness(one: Daily, other: Daily) -> float:
    """Difference of the shares in standard errors, with users as clusters."""
    error = float(np.sqrt(variance(influence(one) - influence(other))))
    return (share(one) - share(other)) / error if error > 0 else 0.0
