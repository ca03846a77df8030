"""Daily series of slices, from cells that were made at ingest: no row is read, so a day is aggregated once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..cells import TOTAL
from ..clustered import Grouped, logit
from ..distributions import integers, split
from ..engine import Engine
from ..histogram import Floats, Histogram, Integers
from ..identity import GROUPS
from .change_point import Daily

Day = np.datetime64


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of one slice. Arrays of a kind go together; days are numbers since the first one of the window."""

    day: Integers
    bin: Integers
    n: Integers
    places: Integers
    # Of the coarse cells, of launches with a user.
    coarse_day: Integers
    coarse_group: Integers
    coarse: Integers
    coarse_n: Integers
    without_user: int

    @property
    def launches(self) -> int:
        """All of them."""
        return int(self.n.sum())

    def histogram(self, first: int, end: int) -> Histogram:
        """Of some days."""
        inside = (self.day >= first) & (self.day < end)
        return Histogram.of(self.bin[inside], self.n[inside], self.places[inside])

    def grouped(self, first: int, end: int) -> Grouped:
        """Of some days."""
        inside = (self.coarse_day >= first) & (self.coarse_day < end)
        found, where = np.unique(self.coarse[inside], return_inverse=True)
        table = np.bincount(
            self.coarse_group[inside] * len(found) + where, self.coarse_n[inside], GROUPS * len(found)
        ).reshape(GROUPS, len(found))
        return Grouped(found.astype(np.int64), np.asarray(table, np.float64))

    def threshold(self, quantile: float) -> int:
        """Last coarse bin at or below the edge nearest to a quantile of all days; launches beyond it are the slow."""
        found, where = np.unique(self.coarse, return_inverse=True)
        upto = np.cumsum(np.bincount(where, self.coarse_n, len(found)))
        shares = np.asarray(upto / max(float(upto[-1]), 1.0))
        inner = (shares > 0) & (shares < 1)
        if not inner.any():
            return int(found[-1])
        distance = np.abs(logit(np.clip(shares, 1e-12, 1 - 1e-12)) - logit(np.float64(quantile)))
        return int(found[int(np.argmin(np.where(inner, distance, np.inf)))])

    def daily(self, threshold: int, days: int) -> Daily:
        """Launches and slow ones by day and group."""
        at = self.coarse_day * GROUPS + self.coarse_group
        above = np.where(self.coarse > threshold, self.coarse_n, 0)
        size, shape = days * GROUPS, (days, GROUPS)
        return Daily(added(at, self.coarse_n, size).reshape(shape), added(at, above, size).reshape(shape))


def added(at: Integers, weights: Integers, size: int) -> Floats:
    """Sums by number."""
    return np.asarray(np.bincount(at, weights, size), np.float64)


def days_of(engine: Engine, metric: str) -> tuple[Day, Day]:
    """First and last day of a metric's launches."""
    day = engine.cells("cells", TOTAL, metric)["day"]
    ends: Any = pc.min_max(day)
    return Day(ends["min"].as_py(), "D"), Day(ends["max"].as_py(), "D")


def people(cells: pa.Table, first: Day, last: Day) -> pa.Table:
    """Cells of some days, without those of robots."""
    ends = [pa.scalar(one.astype(object), pa.date32()) for one in (first, last)]
    day = cells["day"].cast(pa.date32())
    inside = pc.and_(pc.greater_equal(day, ends[0]), pc.less_equal(day, ends[1]))
    return cells.filter(pc.and_(inside, pc.invert(cells["robot"])))


def read(engine: Engine, dimension: str, metric: str, first: Day, last: Day) -> dict[str, Cells]:
    """Value of a dimension -> its cells."""
    fine = split(people(engine.cells("cells", dimension, metric), first, last))
    coarse = split(people(engine.cells("groups", dimension, metric), first, last))
    empty = pa.table({name: pa.array([], pa.int64()) for name in ("group", "coarse", "n")} | {"day": no_days()})
    return {value: cells_of(table, coarse.get(value, empty), first) for value, table in fine.items()}


def no_days() -> pa.Array:
    """An empty column of days."""
    return pa.array([], pa.date32())


def cells_of(fine: pa.Table, coarse: pa.Table, first: Day) -> Cells:
    """Arrays of one slice."""
    group = integers(coarse, "group")
    known = group >= 0
    n = integers(coarse, "n")
    return Cells(
        numbered(fine, first),
        integers(fine, "bin"),
        integers(fine, "n"),
        integers(fine, "places"),
        numbered(coarse, first)[known],
        group[known],
        integers(coarse, "coarse")[known],
        n[known],
        int(n[~known].sum()),
    )


def numbered(table: pa.Table, first: Day) -> Integers:
    """Days as numbers since the first one."""
    return np.asarray(table["day"].cast(pa.date32()).cast(pa.int32()).to_numpy(), np.int64) - int(
        first.astype("datetime64[D]").astype(np.int64)
    )
