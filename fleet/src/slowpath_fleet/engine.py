"""The engine that queries run on: DuckDB in this process, through Ibis.

What a command needs are two tables, rows and cells; everything after the cells is computed with numpy. Queries over
rows are Ibis expressions, so another engine (`backends`) needs this class's methods and no query of its own.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from . import embedded
from .cells import TOTAL
from .errors import wrong_usage
from .schema import MISSING
from .sql_text import literal
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
        return self.connection.con.sql(" UNION ALL ".join(parts)).to_arrow_table()

    def fetch(self, expression: Any) -> pa.Table:
        """Runs it in DuckDB."""
        return self.connection.con.sql(self.connection.compile(expression)).to_arrow_table()

    def close(self) -> None:
        """Frees its memory and its disk space."""
        self.connection.disconnect()
        self.spill.cleanup()


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
