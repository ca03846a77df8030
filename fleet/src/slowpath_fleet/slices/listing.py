"""Picked slices as they are printed."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np

from ..cells import value_of
from ..clustered import Estimate
from ..engine import Engine
from ..printed import Reversal, Slice, quantity
from ..recipe import recipe
from ..reference_distributions import t_quantile
from .cube import Counts, Cube, Where, combination
from .decomposition import excess, safe, tested, with_equal_mixes

# Standard errors beyond which a sign is believed.
SURE = 3.0


def interval(value: float, error: float, freedom: int) -> Estimate:
    """A value with its 95 % interval."""
    reach = t_quantile(0.975, freedom) * float(error)
    return Estimate(value, value - reach, value + reach)


@dataclass(frozen=True, slots=True)
class Found:
    """Picked slices, best first; lists go together."""

    wheres: list[dict[str, str]]
    # Launches of each that no slice before it holds; None where there is no slice.
    counts: Counts | None
    q: list[float]
    confirmed: list[bool]
    users: list[int | None]


def listed(found: Found, total: Counts, program: str | None, state: str | None) -> list[Slice]:
    """The slices, confirmed ones first, then by contribution; figures are of all users."""
    if found.counts is None:
        return []
    result = tested(found.counts, total)
    whole = safe(excess(total.launches.sum(2), total.above.sum(2)))[0]
    slices = []
    for at, where in enumerate(found.wheres):
        command, rest = recipe(where, program, state)
        within = float(result.whole.within[at])
        against = np.sign(within) != np.sign(result.whole.contribution[at])
        slices.append(
            Slice(
                where=where,
                contribution=quantity(interval(result.share[at], result.share_error[at], result.freedom), "ratio"),
                mix=float(result.whole.mix[at] / whole),
                within=within / float(whole),
                gap=quantity(interval(result.whole.gap[at], result.gap_error[at], result.freedom), "ratio"),
                n=int(found.counts.launches[at].sum()),
                users=found.users[at],
                q=found.q[at],
                reversal=bool(against and abs(within) > SURE * result.within_error[at]),
                confirmed=found.confirmed[at],
                recipe=command,
                recipe_notes=rest,
            )
        )
    return sorted(slices, key=lambda one: (not one.confirmed, -(one.contribution.value or 0.0)))


def named(cube: Cube, where: Where) -> dict[str, str]:
    """Column and value as text."""
    return {cube.columns[column]: cube.names[column][value] for column, value in where}


def users_of(engine: Engine, rows: Any, wheres: list[dict[str, str]]) -> list[int | None]:
    """Different users of slices; None where a value stands for several."""
    inside = {}
    for number, where in enumerate(wheres):
        conditions = [value_of(rows, column) == value for column, value in where.items()]
        inside[f"s{number}_"] = ibis.ifelse(functools.reduce(operator.and_, conditions), 1, 0).cast("int8")
    # A line a user, and not a set of users a slice: one table of users in memory, whatever the number of slices.
    keyed = rows.filter(rows.user_key.notnull()).mutate(**inside)
    each = keyed.group_by("user_key").agg(**{name: keyed[name].max() for name in inside})
    table = engine.fetch(each.aggregate(**{name: each[name].cast("int64").sum() for name in inside}))
    return [int(table[name][0].as_py() or 0) or None for name in inside]


def reversals(cube: Cube, total: Counts) -> list[Reversal]:
    """Columns whose mix-adjusted difference has the opposite sign of the whole (Simpson, JRSS B 1951).

    Both signs must be beyond chance: where either 95 % interval covers 0, nothing is reversed.
    """
    of_total = tested(total, total)
    whole, whole_error = float(of_total.whole.gap[0]), float(of_total.gap_error[0])
    beyond = t_quantile(0.975, of_total.freedom)
    if abs(whole) <= beyond * whole_error:
        return []
    found = []
    for column, name in enumerate(cube.columns):
        wheres, counts = combination(cube, (column,))
        if len(wheres) < 2:
            continue
        within, error = with_equal_mixes(counts, total)
        if np.sign(within) != np.sign(whole) and abs(within) > beyond * error and abs(within) > 0.1 * abs(whole):
            found.append(Reversal(name, whole, within))
    return found
