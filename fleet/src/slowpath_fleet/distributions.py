"""Histograms and groups of every value of a dimension, from an engine's cells."""

from __future__ import annotations

from dataclasses import dataclass

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
    """A column as integers."""
    return np.asarray(table[column].to_numpy(), np.int64)


def split(table: pa.Table) -> dict[str, pa.Table]:
    """Cells by value."""
    encoded = table["value"].combine_chunks().dictionary_encode() if table.num_rows else None
    if encoded is None:
        return {}
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = encoded.indices.to_numpy()
    return {
        str(value): table.filter(pa.array(codes == code)) for code, value in enumerate(encoded.dictionary.to_pylist())
    }


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
