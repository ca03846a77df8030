"""Retention: the share of units that come back exactly d days after their first day."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc

from ..histogram import Floats, Integers
from .effect import Effect
from .means import ratio
from .statistic import Arms
from .units import Population


def days_seen(people: Population) -> tuple[Integers, Integers]:
    """(number of the unit, day since 1970) of every day on which a unit launched."""
    rows: Any = people.rows
    found = people.engine.fetch(rows.group_by(["unit_", "day"]).agg(n=rows.count()))
    where = pc.index_in(found["unit_"].combine_chunks(), people.units).to_numpy(zero_copy_only=False).astype(np.float64)
    known = ~np.isnan(where)
    day = np.asarray(found["day"].cast("date32").cast("int32").to_numpy(), np.int64)
    return where[known].astype(np.int64), day[known]


def returned(unit: Integers, day: Integers, units: int, after: int) -> tuple[Floats, Floats]:
    """For every unit: whether it came back, and whether the data reach far enough to know."""
    first = np.full(units, np.iinfo(np.int64).max)
    np.minimum.at(first, unit, day)
    last = int(day.max()) if len(day) else 0
    came = np.zeros(units)
    came[unit[day == first[unit] + after]] = 1.0
    known = (first <= last - after).astype(np.float64)
    return came, known


def retention(seen: tuple[Integers, Integers], people: Population, arms: Arms, after: int) -> Effect:
    """Effect on the share that comes back after so many days, of units that can have."""
    came, known = returned(*seen, len(people.arm), after)
    sides = [{"numer": came[arm & (known > 0)]} for arm in arms]
    return ratio(sides[0], sides[1], denominator=False, covariates=False, unit="ratio", good=1)
