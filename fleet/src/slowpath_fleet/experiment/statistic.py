"""Statistics of a metric, one entry each: how it is named, and how its effect is computed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..histogram import Integers
from ..printed import Unit
from .effect import Effect
from .means import ratio
from .quantile_effect import arm_quantile, quantile_effect
from .units import Population, UnitSums, arm_histogram


@dataclass(frozen=True, slots=True)
class MetricData:
    """What statistics of a metric are computed from."""

    people: Population
    sums: UnitSums
    bins: tuple[Integers, Integers, Integers, Integers]
    unit: Unit
    # 1 where larger values are better.
    good: int


Arms = tuple[NDArray[np.bool_], NDArray[np.bool_]]


def mean(data: MetricData, arms: Arms, _name: str) -> Effect:
    """Mean of the values of all launches: a ratio of sums, for users launch differently often."""
    s = data.sums
    columns = [
        {
            "numer": s.total[arm],
            "denom": s.launches[arm],
            "numer0": s.total_before[arm],
            "denom0": s.launches_before[arm],
        }
        for arm in arms
    ]
    # A ratio needs launches of the pre-period on both sides.
    cuped = all(one["denom0"].sum() > 0 for one in columns)
    return ratio(columns[0], columns[1], denominator=True, covariates=cuped, unit=data.unit, good=data.good)


def count_per_user(data: MetricData, arms: Arms, _name: str) -> Effect:
    """Launches of a unit."""
    s = data.sums
    columns = [{"numer": s.launches[arm], "numer0": s.launches_before[arm]} for arm in arms]
    cuped = all(np.ptp(one["numer0"]) > 0 for one in columns)
    return ratio(columns[0], columns[1], denominator=False, covariates=cuped, unit="count", good=1)


def quantile(data: MetricData, arms: Arms, name: str) -> Effect:
    """A quantile of the values of all launches."""
    share = float(name[1:]) / 100
    found = []
    for arm in arms:
        chosen = arm[data.bins[0]]
        unit, bins, counts = (column[chosen] for column in data.bins[:3])
        found.append(arm_quantile(unit, bins, counts, arm_histogram(data.bins, chosen), share))
    return quantile_effect(found[0], found[1], data.unit, data.good)


@dataclass(frozen=True, slots=True)
class Statistic:
    """One kind of statistic."""

    pattern: re.Pattern[str]
    example: str
    effect: Callable[[MetricData, Arms, str], Effect]


STATISTICS: tuple[Statistic, ...] = (
    Statistic(re.compile(r"mean"), "mean", mean),
    Statistic(re.compile(r"p(?=.*[1-9])\d{1,2}(\.\d+)?"), "p95", quantile),
    Statistic(re.compile(r"count_per_user"), "count_per_user", count_per_user),
)


def statistic(name: str) -> Statistic | None:
    """The kind that a name belongs to."""
    return next((one for one in STATISTICS if one.pattern.fullmatch(name)), None)
