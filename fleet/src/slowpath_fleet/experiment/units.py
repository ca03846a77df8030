"""Tables with a row a unit (a user, or what `--unit` names), from an engine."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..cells import value_of
from ..engine import Engine
from ..errors import wrong_usage
from ..histogram import Floats, Histogram, Integers
from ..schema import MISSING, canonical
from ..store import Store


@dataclass(frozen=True, slots=True)
class Population:
    """The launches of an experiment, and how units and arms are read off them."""

    engine: Engine
    # Launches of people in an arm, as an Ibis table with `unit_` and `arm_`.
    rows: Any
    # Launches of everybody in the pre-period; None without one.
    earlier: Any
    # Units that are in one arm only, sorted, and the number of their arm.
    units: pa.Array
    arm: Integers
    arms: list[str]
    robots: int
    mixed: int
    before: datetime.date | None

    def users(self) -> dict[str, int]:
        """Units of every arm."""
        counts = np.bincount(self.arm, minlength=len(self.arms))
        return {name: int(n) for name, n in zip(self.arms, counts, strict=True)}

    def aligned(self, table: pa.Table, *columns: str) -> list[Floats]:
        """Columns of a table with a row a unit, in the order of `units`; 0 where a unit is not in it."""
        where = pc.index_in(self.units, table["unit_"].combine_chunks()).to_numpy(zero_copy_only=False)
        known = ~np.isnan(where.astype(np.float64))
        at = np.where(known, where, 0).astype(np.int64)
        found = []
        for column in columns:
            values = np.asarray(table[column].to_numpy(), np.float64)
            found.append(np.where(known, values[at], 0.0) if len(values) else np.zeros(len(at)))
        return found


def population(
    store: Store, engine: Engine, unit: str, experiment: str | None, before: datetime.date | None
) -> Population:
    """Who took part in which arm; robots are left out, and units with several arms."""
    dimensions = store.dimensions()
    if "arm" not in dimensions:
        raise wrong_usage(
            "cannot judge an experiment", str(store.directory), "the data have no column 'arm'", "ingest it"
        )
    rows: Any = engine.rows()
    name = canonical(unit)
    if name != "user" and name not in dimensions:
        known = ", ".join(["user", *sorted(dimensions)])
        raise wrong_usage("cannot use the unit", unit, "the data have no such column", f"use one of: {known}")
    rows = rows.mutate(unit_=rows.user_key if name == "user" else value_of(rows, name), arm_=value_of(rows, "arm"))
    rows = rows.filter(rows.unit_.notnull())
    chosen = rows.filter(rows.arm_ != MISSING)
    if experiment is not None:
        chosen = chosen.filter(value_of(chosen, "experiment") == experiment)
    if before is not None:
        chosen = chosen.filter(chosen.day >= before)
    robots = engine.fetch(chosen.filter(value_of(chosen, "robot") == "true").aggregate(n=chosen.weight.sum()))
    earlier = None
    if before is not None:
        earlier = rows.filter(rows.day < before, value_of(rows, "robot") != "true")
    people = chosen.filter(value_of(chosen, "robot") != "true")
    found = engine.fetch(people.group_by("unit_").agg(arms=people.arm_.nunique(), arm=people.arm_.max()))
    single = found.filter(pc.equal(found["arms"], 1)).sort_by("unit_")
    if not single.num_rows:
        raise wrong_usage(
            "cannot judge an experiment", experiment or "", "no unit is in exactly one arm", "check the data"
        )
    names, arm = np.unique(np.asarray(single["arm"].to_pylist(), object).astype(str), return_inverse=True)
    return Population(
        engine,
        people,
        earlier,
        single["unit_"].combine_chunks(),
        arm.astype(np.int64),
        [str(one) for one in names],
        int(robots["n"][0].as_py() or 0),
        found.num_rows - single.num_rows,
        before,
    )


@dataclass(frozen=True, slots=True)
class UnitSums:
    """Of one metric, a number a unit: launches and the sum of their values, during the experiment and before it."""

    launches: Floats
    total: Floats
    launches_before: Floats
    total_before: Floats


def unit_sums(people: Population, metric: str) -> UnitSums:
    """Sums by unit."""

    def sums(rows: Any) -> list[Floats]:
        rows = rows.filter(rows.metric == metric)
        grouped = rows.group_by("unit_").agg(
            n=rows.weight.sum().cast("float64"), total=(rows.value * rows.weight).sum().cast("float64")
        )
        return people.aligned(people.engine.fetch(grouped), "n", "total")

    launches, total = sums(people.rows)
    if people.earlier is None:
        nothing = np.zeros(len(launches))
        return UnitSums(launches, total, nothing, nothing)
    return UnitSums(launches, total, *sums(people.earlier))


def unit_bins(people: Population, metric: str) -> tuple[Integers, Integers, Integers, Integers]:
    """(number of the unit, bin, launches, places) for every unit and bin of a metric."""
    rows = people.rows
    rows = rows.filter(rows.metric == metric)
    found = people.engine.fetch(
        rows.group_by(["unit_", "bin"]).agg(
            n=rows.weight.sum().cast("int64"), places=(rows.weight * rows.place.cast("int64")).sum().cast("int64")
        )
    )
    where = pc.index_in(found["unit_"].combine_chunks(), people.units).to_numpy(zero_copy_only=False).astype(np.float64)
    known = ~np.isnan(where)
    columns = [np.asarray(found[name].to_numpy(), np.int64)[known] for name in ("bin", "n", "places")]
    return where[known].astype(np.int64), columns[0], columns[1], columns[2]


def arm_histogram(bins: tuple[Integers, Integers, Integers, Integers], chosen: Any) -> Histogram:
    """Histogram of some of the rows of `unit_bins`."""
    return Histogram.of(bins[1][chosen], bins[2][chosen], bins[3][chosen])
