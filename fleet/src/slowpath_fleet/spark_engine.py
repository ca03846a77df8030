"""Queries on a Spark cluster: the same Ibis expressions over the same row files.

Cells are computed from rows, on the cluster: bins and places were made at ingest, so all that Spark does is count
integers, and its cells are those of DuckDB. Driver and workers must see the store under the same path.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pyarrow as pa

from .engine import RowEngine
from .errors import FleetError, cannot
from .store import Store

REMEDY = "pip install 'pyspark>=4,<4.1' beside slowpath-fleet, with Java 17"


class SparkEngine(RowEngine):
    """A session on a cluster, for one command."""

    def __init__(self, store: Store, master: str) -> None:
        if importlib.util.find_spec("pyspark") is None:
            raise cannot("cannot use Spark", master, "the package pyspark is not installed", REMEDY)
        # Imported here: it is no dependency of the package, and starts slowly.
        import ibis
        import pyspark.sql

        self.store = store
        self._rows: Any = None
        builder = pyspark.sql.SparkSession.builder.master(master).appName("slowpath-fleet")
        settings = {
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.execution.arrow.pyspark.enabled": "true",
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        try:
            self.session = builder.getOrCreate()
        except Exception as error:
            raise not_reached(master, error) from error
        self.session.sparkContext.setLogLevel("ERROR")
        self.connection = ibis.pyspark.connect(self.session)
        self.master = master

    def rows(self) -> Any:
        """All row files as a view of the session."""
        if self._rows is None:
            # Paths of a cluster are whole: a worker has another working directory.
            files = [f"file://{Path(name).resolve()}" for name in self.store.row_files()]
            base = f"file://{(self.store.directory / 'rows').resolve()}"
            read = self.session.read.option("mergeSchema", "true").option("basePath", base)
            read.parquet(*files).createOrReplaceTempView("launches")
            self._rows = self.connection.table("launches")
        return self._rows

    def fetch(self, expression: Any) -> pa.Table:
        """Runs it on the cluster."""
        try:
            return self.connection.to_pyarrow(expression)
        except FleetError:
            raise
        except Exception as error:
            raise not_reached(self.master, error) from error

    def close(self) -> None:
        """Ends the session, and with it the executors."""
        self.session.stop()


def not_reached(master: str, error: Exception) -> FleetError:
    """What Spark says, in a line."""
    why = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
    return cannot("cannot compute on Spark", master, why, "check that the master runs, and that all see the store")
