"""The counts that all slices are made of: one query, everything after it is computed here.

The engine counts launches by side (baseline or not), above the threshold or not, group of users and all dimensions at
once; that table is far smaller than the rows. Slices are sums over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray

from ..cells import value_of
from ..engine import Engine
from ..histogram import Floats, Integers
from ..identity import GROUPS

# Values of a dimension that are told apart; the others, with fewer launches, become one.
MOST_VALUES = 64
OTHER = "(other)"
SIDES = 2

Where = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Cube:
    """Launches by everything."""

    columns: list[str]
    # Names of the values of every column.
    names: list[list[str]]
    # A row a cell; a column a dimension: number of the value.
    codes: Integers
    # Of every cell: 0 baseline, 1 others.
    side: Integers
    group: Integers
    # Launches, and those above the threshold.
    launches: Floats
    above: Floats

    def inside(self, where: Where) -> NDArray[np.bool_]:
        """Cells of a slice."""
        mask = np.ones(len(self.side), bool)
        for column, value in where:
            mask &= self.codes[:, column] == value
        return mask


@dataclass(frozen=True, slots=True)
class Counts:
    """Launches, and those above the threshold, of slices: [slice, side, group]."""

    launches: Floats
    above: Floats

    def of_groups(self, chosen: Integers) -> Counts:
        """Of some groups of users only."""
        return Counts(self.launches[:, :, chosen], self.above[:, :, chosen])

    def pick(self, chosen: Integers) -> Counts:
        """Of some slices only."""
        return Counts(self.launches[chosen], self.above[chosen])


def people(engine: Engine, metric: str) -> Any:
    """Launches of a metric without those of robots.

    Few robots make many launches, all alike: they would only widen the errors of every slice they are in.
    """
    rows: Any = engine.rows()
    return rows.filter((rows.metric == metric) & (value_of(rows, "robot") != "true"))


def read_cube(engine: Engine, rows: Any, by: str, baseline: str, threshold: int, columns: list[str]) -> Cube:
    """Counts launches with a user; `threshold` is the last bin that is not above."""
    rows = rows.filter(rows.user_bucket.notnull())
    named = {f"d{number}_": value_of(rows, column) for number, column in enumerate(columns)}
    rows = rows.mutate(
        **named,
        side_=ibis.ifelse(value_of(rows, by) == baseline, 0, 1).cast("int32"),
        group_=(rows.user_bucket % GROUPS).cast("int32"),
        above_=ibis.ifelse(rows.bin > threshold, rows.weight, 0),
    )
    keys = [*named, "side_", "group_"]
    counted = rows.group_by(keys).agg(n=rows.weight.sum().cast("float64"), k=rows.above_.sum().cast("float64"))
    table = engine.fetch(counted)
    launches = np.asarray(table["n"].to_numpy(), np.float64)
    names: list[list[str]] = []
    codes = np.zeros((table.num_rows, len(columns)), np.int64)
    for number in range(len(columns)):
        codes[:, number], kept = encode(table[f"d{number}_"].to_pylist(), launches)
        names.append(kept)
    return Cube(
        columns,
        names,
        codes,
        np.asarray(table["side_"].to_numpy(), np.int64),
        np.asarray(table["group_"].to_numpy(), np.int64),
        launches,
        np.asarray(table["k"].to_numpy(), np.float64),
    )


def encode(values: list[str], launches: Floats) -> tuple[Integers, list[str]]:
    """Numbers of values, the most frequent first; rare ones share the last number."""
    names, where = np.unique(np.asarray(values, object).astype(str), return_inverse=True)
    order = np.argsort(-np.bincount(where, launches, len(names)), kind="stable")
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    kept = [str(names[one]) for one in order[:MOST_VALUES]]
    if len(names) > MOST_VALUES:
        kept.append(OTHER)
    return np.minimum(rank[where], MOST_VALUES), kept


def sums(at: Integers, weights: Floats, size: int) -> Floats:
    """Weights added up by number."""
    return np.asarray(np.bincount(at, weights, size), np.float64)


def one_slice(cube: Cube, where: Where, free: NDArray[np.bool_]) -> Counts:
    """Counts of one slice, of the cells that are free."""
    chosen = np.flatnonzero(cube.inside(where) & free)
    at = cube.side[chosen] * GROUPS + cube.group[chosen]
    size, shape = SIDES * GROUPS, (1, SIDES, GROUPS)
    return Counts(
        sums(at, cube.launches[chosen], size).reshape(shape),
        sums(at, cube.above[chosen], size).reshape(shape),
    )


def stacked(counts: list[Counts]) -> Counts:
    """Counts of slices after each other."""
    return Counts(np.concatenate([one.launches for one in counts]), np.concatenate([one.above for one in counts]))


def totals(cube: Cube) -> Counts:
    """All launches as one slice."""
    return count(cube, np.zeros(len(cube.side), np.int64), 1)


def count(cube: Cube, key: Integers, slices: int) -> Counts:
    """Counts by slice number."""
    at = (key * SIDES + cube.side) * GROUPS + cube.group
    shape = (slices, SIDES, GROUPS)
    size = slices * SIDES * GROUPS
    return Counts(sums(at, cube.launches, size).reshape(shape), sums(at, cube.above, size).reshape(shape))


def combination(cube: Cube, columns: tuple[int, ...]) -> tuple[list[Where], Counts]:
    """All slices that fix these columns."""
    key = np.zeros(len(cube.side), np.int64)
    for column in columns:
        key = key * len(cube.names[column]) + cube.codes[:, column]
    found, compact = np.unique(key, return_inverse=True)
    wheres = []
    for one in found:
        values, rest = [], int(one)
        for column in reversed(columns):
            rest, value = divmod(rest, len(cube.names[column]))
            values.append((column, value))
        wheres.append(tuple(reversed(values)))
    return wheres, count(cube, compact.astype(np.int64), len(found))
