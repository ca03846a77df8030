"""The engine that queries run on: DuckDB in this process, through Ibis.

What a command needs are two tables, rows and cells; everything after the cells is computed with numpy. Queries over
rows are Ibis expressions, so another engine (`backends`, `RowEngine`) has `rows` and `fetch` and no query of its own.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from . import embedded
from .cells import AGGREGATES, TOTAL, value_of
from .errors import wrong_usage
from .identity import SAMPLED
from .schema import MISSING
from .sql_text import identifier, literal
from .store import MOST_VALUES, Store


class Engine:
    """DuckDB on a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        # For nobody else to read, and not in the working directory.
        self.spill = tempfile.TemporaryDirectory(prefix="slowpath-fleet-")
        self.connection = embedded.connect(Path(self.spill.name), [store.directory])
        self._rows: Any = None

    def rows(self) -> Any:
        """A view of all row files, so that nothing is read that a query does not need."""
        if self._rows is None:
            names = ", ".join(literal(name) for name in self.store.row_files())
            self.connection.con.execute(
                f"CREATE OR REPLACE VIEW launches AS SELECT * FROM read_parquet([{names}], hive_partitioning = true, "
                "hive_types = {'day': DATE}, union_by_name = true)"
            )
            self._rows = self.connection.table("launches")
        return self._rows

    def cells(self, kind: str, dimension: str, metric: str) -> pa.Table:
        """Read as stored; a batch without the dimension counts as missing it."""
        return self.connection.con.sql(self.stored(kind, dimension, metric)).to_arrow_table()

    def summed(self, kind: str, dimension: str, metric: str) -> pa.Table:
        """Cells of all days and batches added up by the `keys` of their kind."""
        keys = ", ".join(identifier(one) for one in AGGREGATES[kind].keys)
        sums = ", ".join(f"sum({one})::BIGINT AS {one}" for one in AGGREGATES[kind].sums)
        sql = f"SELECT {keys}, {sums} FROM ({self.stored(kind, dimension, metric)}) GROUP BY {keys}"
        return self.connection.con.sql(sql).to_arrow_table()

    def users(self, dimension: str, metric: str, rate: int) -> pa.Table:
        """Different users of every value, `users` by `value`, in 1 of `rate` (a power of two) buckets."""
        if rate < SAMPLED:
            return self.fetch(users_of_rows(self.rows(), dimension, metric, rate))
        sql = self.stored("users", dimension, metric)
        return self.connection.con.sql(
            f"SELECT value, count(DISTINCT user_key) AS users FROM ({sql}) WHERE user_key % {rate} = 0 GROUP BY value"
        ).to_arrow_table()

    def stored(self, kind: str, dimension: str, metric: str) -> str:
        """SQL for cells as they are stored."""
        having: list[str] = []
        lacking: list[str] = []
        for batch in self.store.batches_with_rows():
            has = dimension == TOTAL or dimension in batch.dimensions
            (having if has else lacking).append(literal(self.store.aggregate_file(kind, batch)))
        parts = []
        for files, stored, value in ((having, dimension, "value"), (lacking, TOTAL, literal(MISSING))):
            if files:
                parts.append(
                    f"SELECT * REPLACE ({literal(dimension)} AS dimension, {value} AS value) FROM "
                    f"read_parquet([{', '.join(files)}]) WHERE dimension = {literal(stored)} AND "
                    f"metric = {literal(metric)}"
                )
        return " UNION ALL ".join(parts)

    def fetch(self, expression: Any) -> pa.Table:
        """Runs it in DuckDB."""
        return self.connection.con.sql(self.connection.compile(expression)).to_arrow_table()

    def close(self) -> None:
        """Frees its memory and its disk space."""
        self.connection.disconnect()
        self.spill.cleanup()


class RowEngine(Engine):
    """An engine that counts rows whenever cells are asked for: it does not read those of the store."""

    def cells(self, kind: str, dimension: str, metric: str) -> pa.Table:
        """Counted there."""
        rows = self.rows()
        return self.fetch(AGGREGATES[kind].expression(rows.filter(rows.metric == metric), dimension))

    def summed(self, kind: str, dimension: str, metric: str) -> pa.Table:
        """Cells added up here."""
        keys, sums = AGGREGATES[kind].keys, AGGREGATES[kind].sums
        cells = self.cells(kind, dimension, metric)
        table = cells.group_by(list(keys)).aggregate([(one, "sum") for one in sums])
        return table.rename_columns([one.removesuffix("_sum") for one in table.column_names])

    def users(self, dimension: str, metric: str, rate: int) -> pa.Table:
        """Counted there."""
        return self.fetch(users_of_rows(self.rows(), dimension, metric, rate))


def users_of_rows(rows: Any, dimension: str, metric: str, rate: int) -> Any:
    """What `Engine.users` returns, from rows, as an Ibis expression."""
    rows = rows.filter(rows.metric == metric)
    if rate > 1:
        rows = rows.filter(rows.user_bucket % rate == 0)
    keyed = rows.mutate(value_=value_of(rows, dimension))
    counted = keyed.group_by("value_").agg(users=keyed.user_key.nunique())
    return counted.select(value=counted.value_, users=counted.users)


def known_dimension(store: Store, name: str, purpose: str) -> str:
    """The dimension of that name; an error where there is none, or where it has too many values."""
    dimensions = store.dimensions()
    if name not in dimensions:
        known = ", ".join(sorted(dimensions)) or "none"
        raise wrong_usage(purpose, name, "the data have no such column", f"use one of: {known}")
    if dimensions[name] > MOST_VALUES:
        why = f"the column has about {dimensions[name]} values, more than {MOST_VALUES}"
        raise wrong_usage(purpose, name, why, "use a coarser column")
    return name
