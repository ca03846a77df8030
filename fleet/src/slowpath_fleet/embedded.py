"""The embedded DuckDB: bounded in memory, UTC, no network, and no file but those that it is given."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import ibis

from .errors import wrong_usage
from .sql_text import literal, literals

MEMORY = os.environ.get("SLOWPATH_FLEET_MEMORY", "2GB")


def configure(con: duckdb.DuckDBPyConnection, spill: Path, files: Iterable[Path]) -> None:
    """Bounds of a connection, for good: no SQL changes them.

    `spill` is a private directory for what does not fit in memory. Nothing else is opened but `files`, and what lies
    beneath those of them that are directories.
    """
    try:
        con.execute(f"SET memory_limit = {literal(MEMORY)}")
    except duckdb.Error as error:
        why = f"SLOWPATH_FLEET_MEMORY is {MEMORY!r}"
        raise wrong_usage("cannot bound memory", "", why, "write it as 2GB") from error
    con.execute("SET preserve_insertion_order = false")
    con.execute("SET enable_progress_bar = false")
    con.execute("SET autoinstall_known_extensions = false")
    con.execute("SET autoload_known_extensions = false")
    con.execute(f"SET temp_directory = {literal(str(spill))}")
    given = list(files)
    directories = literals([str(spill), *(str(one) for one in given if one.is_dir())])
    con.execute(f"SET allowed_directories = {directories}")
    con.execute(f"SET allowed_paths = {literals([str(one) for one in given if not one.is_dir()])}")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")


def connect(spill: Path, files: Iterable[Path]) -> Any:
    """An Ibis connection to a fresh embedded DuckDB; its `.con` is DuckDB's own."""
    connection = ibis.duckdb.connect()
    configure(connection.con, spill, files)
    return connection
