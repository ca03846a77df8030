"""The embedded DuckDB: bounded in memory, spilling beside the store, UTC, no network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import ibis

from .errors import wrong_usage
from .sql_text import literal

MEMORY = os.environ.get("SLOWPATH_FLEET_MEMORY", "2GB")


def configure(con: duckdb.DuckDBPyConnection, spill: Path | None) -> None:
    """Bounds of a connection. `spill` is a directory for what does not fit in memory."""
    try:
        con.execute(f"SET memory_limit = {literal(MEMORY)}")
    except duckdb.Error as error:
        why = f"SLOWPATH_FLEET_MEMORY is {MEMORY!r}"
        raise wrong_usage("cannot bound memory", "", why, "write it as 2GB") from error
    con.execute("SET preserve_insertion_order = false")
    con.execute("SET enable_progress_bar = false")
    con.execute("SET autoinstall_known_extensions = false")
    con.execute("SET autoload_known_extensions = false")
    if spill is not None:
        con.execute(f"SET temp_directory = {literal(str(spill))}")


def connect(spill: Path | None = None) -> Any:
    """An Ibis connection to a fresh embedded DuckDB; its `.con` is DuckDB's own."""
    connection = ibis.duckdb.connect()
    configure(connection.con, spill)
    return connection
