"""`compare`: quantiles of every value of a column, and their differences."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from . import clustered
from .distributions import Distribution, distributions, users_by
from .engine import Engine, known_dimension
from .errors import wrong_usage
from .printed import (
    CompareResult,
    CompareRow,
    Difference,
    Quantity,
    Unavailable,
    Unit,
    quantity,
    unit_of,
)
from .store import Store

# Values with rows of their own; all pairs of them are compared up to ALL_PAIRS, else each with the baseline.
MOST_ROWS = 50
ALL_PAIRS = 4
# Values named where several lack the same intervals.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Compared:
    """A result, and the distributions that pictures are drawn from."""

    result: CompareResult
    distributions: dict[str, Distribution]
    unit: Unit


def compare(
    store: Store, engine: Engine, by: str, metric: str | None, quantiles: list[tuple[str, float]], baseline: str | None
) -> Compared:
    """Compares the values of a column."""
    known_dimension(store, by, "cannot compare by")
    name = store.metric(metric)
    unit = unit_of(store.manifest.units[name])
    found = distributions(engine, by, name)
    ordered = sorted(found, key=lambda value: (-found[value].histogram.n, value))
    if baseline is not None and baseline not in found:
        known = ", ".join(ordered[:10])
        raise wrong_usage("cannot compare with", baseline, f"the column {by} has no such value", f"use one of: {known}")
    if baseline is not None:
        ordered = [baseline, *(value for value in ordered if value != baseline)]
    shown = ordered[:MOST_ROWS]
    users, rate = users_by(engine, by, name, sum(one.histogram.n for one in found.values()))
    estimates = {value: {key: estimate(found[value], share) for key, share in quantiles} for value in shown}
    rows = [
        CompareRow(
            value,
            found[value].histogram.n,
            users.get(value) or None,
            {key: quantity(one.estimate, unit) for key, one in estimates[value].items()},
        )
        for value in shown
    ]
    pairs = (
        [(shown[0], value) for value in shown[1:]]
        if baseline is not None or len(shown) > ALL_PAIRS
        else list(itertools.combinations(shown, 2))
    )
    differences = [
        Difference(a, b, key, *effect(estimates[a][key], estimates[b][key], unit))
        for a, b in pairs
        for key, _ in quantiles
    ]
    result = CompareResult(
        by=by,
        metric=name,
        rows=rows,
        differences=differences,
        notes=notes(ordered, rate),
        unavailable=unavailable({value: found[value] for value in shown}, estimates),
    )
    return Compared(result, {value: found[value] for value in shown}, unit)


def estimate(one: Distribution, share: float) -> clustered.QuantileEstimate:
    """A quantile; without an interval where launches have no user."""
    found = clustered.quantile(one.histogram, one.grouped, share)
    if one.clustered:
        return found
    nan = float("nan")
    return clustered.QuantileEstimate(clustered.Estimate(found.estimate.value, nan, nan), found.influence, 0)


def effect(a: clustered.QuantileEstimate, b: clustered.QuantileEstimate, unit: Unit) -> tuple[Quantity, Quantity]:
    """Difference and relative difference."""
    return quantity(clustered.difference(a, b), unit), quantity(clustered.ratio(a, b), "ratio")


def notes(ordered: list[str], rate: int) -> list[str]:
    """What the table does not show."""
    found = ["Intervals are 95 %, clustered by user."]
    if len(ordered) > MOST_ROWS:
        found.append(f"{len(ordered) - MOST_ROWS} further values with fewer launches are not shown.")
    if rate > 1:
        found.append(f"Users are counted in 1 of {rate} buckets and scaled up.")
    return found


def unavailable(
    shown: dict[str, Distribution], estimates: dict[str, dict[str, clustered.QuantileEstimate]]
) -> list[Unavailable]:
    """Values whose intervals are missing, with the reason; those that lack the same for the same reason together."""
    found = []
    alike: dict[tuple[str, str], list[str]] = {}
    for value, one in shown.items():
        if not one.clustered:
            why = f"{one.without_user} of {one.histogram.n} launches have no user"
            found.append(Unavailable(f"intervals of {value}", why, "send a pseudonymous user with every launch"))
        elif (few := clustered.few_groups(one.grouped.groups)) is not None:
            found.append(Unavailable(f"intervals of {value}", few, "collect launches of more users"))
        else:
            reasons = {key: each.missing for key, each in estimates[value].items() if each.missing is not None}
            for why in dict.fromkeys(reasons.values()):
                quantiles = ", ".join(f"p{key}" for key in reasons if reasons[key] == why)
                alike.setdefault((quantiles, why), []).append(value)
    found += [
        Unavailable(f"intervals of {quantiles} of {listed(values)}", why, clustered.REMEDY)
        for (quantiles, why), values in alike.items()
    ]
    return found


def listed(values: list[str]) -> str:
    """The first few of them, and how many more there are."""
    more = f" and {len(values) - MOST_NAMED} more" if len(values) > MOST_NAMED else ""
    return ", ".join(values[:MOST_NAMED]) + more
