"""Histograms and groups of every value of a dimension, from an engine's cells."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from .clustered import Grouped, grouped_of
from .engine import Engine
from .histogram import Histogram, Integers
from .identity import GROUPS

# Rows that are looked at to count users exactly; above it, a share of the buckets is counted and scaled up.
EXACT_USERS = 4_000_000


@dataclass(frozen=True, slots=True)
class Distribution:
    """Launches of one value, or of several together."""

    histogram: Histogram
    grouped: Grouped
    # Launches without a user; with any, no interval can be given.
    without_user: int

    @property
    def clustered(self) -> bool:
        """Whether all launches have a user."""
        return self.without_user == 0


def integers(table: pa.Table, column: str) -> Integers:
    """A column without nulls as integers."""
    # Arrow's `to_numpy` imports pandas, which takes a second.
    return np.asarray(np.from_dlpack(table[column].combine_chunks()), np.int64)


def split(table: pa.Table) -> dict[str, pa.Table]:
    """Cells by value, in one pass over them."""
    ordered = table.sort_by("value")
    names = ordered["value"].to_pylist()
    starts = [at for at, name in enumerate(names) if not at or name != names[at - 1]]
    return {str(names[a]): ordered.slice(a, b - a) for a, b in pairwise([*starts, len(names)])}


def distribution(cells: pa.Table, groups: pa.Table) -> Distribution:
    """All cells together."""
    histogram = Histogram.of(integers(cells, "bin"), integers(cells, "n"), integers(cells, "places"))
    group = integers(groups, "group")
    counts = integers(groups, "n")
    grouped = grouped_of(group, integers(groups, "coarse"), counts, GROUPS)
    return Distribution(histogram, grouped, int(counts[group < 0].sum()))


def distributions(engine: Engine, dimension: str, metric: str) -> dict[str, Distribution]:
    """Value of the dimension -> its launches."""
    return by_value(engine.summed("cells", dimension, metric), engine.summed("groups", dimension, metric))


def by_value(all_cells: pa.Table, all_groups: pa.Table) -> dict[str, Distribution]:
    """Value -> its launches."""
    cells, groups = split(all_cells), split(all_groups)
    return {value: distribution(table, groups[value]) for value, table in cells.items()}


def users_by(engine: Engine, dimension: str, metric: str, launches: int) -> tuple[dict[str, int], int]:
    """Different users of every value, and the 1/rate of the buckets that were looked at (1: all of them).

    Users of days and batches overlap, so counts of them do not add up: users themselves are counted.
    """
    rate = 1
    while launches / rate > EXACT_USERS and rate < 64:
        rate *= 2
    counted = engine.users(dimension, metric, rate)
    names, users = counted["value"].to_pylist(), counted["users"].to_pylist()
    return {str(name): int(n) * rate for name, n in zip(names, users, strict=True)}, rate
