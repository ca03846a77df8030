"""Histogram cells: what a query over rows becomes, the same expression for every engine that Ibis compiles to.

A cell is (dimension, value, metric, day, robot, bin) -> launches, places. A group cell is (dimension, value, metric,
day, robot, group of users, coarse bin) -> launches. The dimension "" stands for all launches. A sample of the users of
every value serves to count them: users of days and batches overlap, so counts of them do not add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ibis

from .bins import COARSE
from .identity import GROUPS, NO_GROUP, SAMPLED
from .schema import MISSING

TOTAL = ""


def value_of(rows: Any, dimension: str) -> Any:
    """Column with the value of a dimension."""
    if dimension == TOTAL:
        return ibis.literal("")
    return rows[dimension].coalesce(MISSING) if dimension in rows.columns else ibis.literal(MISSING)


def is_robot(rows: Any) -> Any:
    """Whether a robot launched it; false where the data do not say."""
    return value_of(rows, "robot") == "true"


def histogram_cells(rows: Any, dimension: str) -> Any:
    """Fine cells of one dimension (`""`: of all rows), as an Ibis expression."""
    keyed = rows.mutate(value_=value_of(rows, dimension), robot_=is_robot(rows))
    counted = keyed.group_by(["value_", "metric", "day", "robot_", "bin"]).agg(
        n=keyed.weight.sum().cast("int64"), places=(keyed.weight * keyed.place.cast("int64")).sum().cast("int64")
    )
    return counted.select(
        dimension=ibis.literal(dimension),
        value=counted.value_,
        metric=counted.metric,
        day=counted.day,
        robot=counted.robot_,
        bin=counted.bin,
        n=counted.n,
        places=counted.places,
    )


def group_cells(rows: Any, dimension: str) -> Any:
    """Coarse cells by group of users, as an Ibis expression."""
    group = (rows.user_bucket % GROUPS).coalesce(NO_GROUP).cast("int16")
    # An offset keeps the division one of numbers that are not negative: engines differ in rounding the others.
    coarse = ((rows.bin.cast("int32") + COARSE_OFFSET) / COARSE).floor().cast("int16")
    keyed = rows.mutate(value_=value_of(rows, dimension), robot_=is_robot(rows), group_=group, coarse_=coarse)
    keys = ["value_", "metric", "day", "robot_", "group_", "coarse_"]
    counted = keyed.group_by(keys).agg(n=keyed.weight.sum().cast("int64"))
    return counted.select(
        dimension=ibis.literal(dimension),
        value=counted.value_,
        metric=counted.metric,
        day=counted.day,
        robot=counted.robot_,
        group=counted.group_,
        coarse=counted.coarse_,
        n=counted.n,
    )


def sampled_users(rows: Any, dimension: str) -> Any:
    """Users in 1 of `SAMPLED` buckets, once a value of a dimension, as an Ibis expression."""
    sample = rows.filter(rows.user_bucket % SAMPLED == 0)
    keyed = sample.mutate(value_=value_of(sample, dimension)).select("value_", "metric", "user_key").distinct()
    return keyed.select(
        dimension=ibis.literal(dimension), value=keyed.value_, metric=keyed.metric, user_key=keyed.user_key
    )


# Multiple of COARSE that makes every bin positive; the largest bin of a double is 35,843.
COARSE_OFFSET = 1600


def last_bin_of(coarse: int) -> int:
    """Last fine bin of a coarse one."""
    return coarse * COARSE - COARSE_OFFSET + COARSE - 1


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One kind of cells: its expression over rows, its columns as they are stored, and how cells add up."""

    expression: Callable[[Any, str], Any]
    columns: str
    # Columns that tell the sums of all days apart, and those that are added up; none: cells do not add up.
    keys: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()


# Folder in the store -> what lies there.
AGGREGATES = {
    "cells": Aggregate(
        histogram_cells,
        "dimension VARCHAR, value VARCHAR, metric VARCHAR, day DATE, robot BOOLEAN, "
        "bin SMALLINT, n BIGINT, places BIGINT",
        ("value", "robot", "bin"),
        ("n", "places"),
    ),
    "groups": Aggregate(
        group_cells,
        "dimension VARCHAR, value VARCHAR, metric VARCHAR, day DATE, robot BOOLEAN, "
        '"group" SMALLINT, coarse SMALLINT, n BIGINT',
        ("value", "robot", "group", "coarse"),
        ("n",),
    ),
    "users": Aggregate(sampled_users, "dimension VARCHAR, value VARCHAR, metric VARCHAR, user_key BIGINT"),
}
