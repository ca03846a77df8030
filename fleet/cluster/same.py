"""What another engine must have the same as DuckDB: cells, and what commands print."""

from __future__ import annotations

from typing import Any

from slowpath_fleet.cells import AGGREGATES
from slowpath_fleet.engine import Engine

METRIC = "time_to_ready"
COMMANDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("compare", {"by": "population"}),
    ("compare", {"by": "navigation", "quantiles": "50,99"}),
    ("slices", {"baseline": "rival", "max_depth": 3}),
    ("experiment", {}),
    ("watch", {}),
)


def sorted_cells(engine: Engine, kind: str, dimension: str) -> list[tuple[Any, ...]]:
    """Cells as rows, each once, added up over batches."""
    table = engine.cells(kind, dimension, METRIC)
    measures = AGGREGATES[kind].sums
    keys = [name for name in table.column_names if name not in measures]
    added = table.group_by(keys).aggregate([(name, "sum") for name in measures])
    columns = [added[name].to_pylist() for name in [*keys, *(f"{name}_sum" for name in measures)]]
    return sorted(zip(*columns, strict=True), key=repr)


def alike(one: Any, other: Any) -> bool:
    """Equal, but for the last digits of sums of doubles, which depend on the order of addition."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-9 * max(abs(one), abs(other), 1e-6)
    return bool(one == other)
