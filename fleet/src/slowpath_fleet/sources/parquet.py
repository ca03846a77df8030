"""Parquet files. What a file declares is checked before anything is decompressed."""

from __future__ import annotations

from pathlib import Path

import duckdb

from ..errors import wrong_usage
from ..sql_text import literal
from .raw_table import RawTable, SourceKind, columns_of

# A file of a few KiB can declare any number of rows that are all alike; more than this is no field data of one file.
MOST_ROWS = 2_000_000_000
# Bytes that a page or a row group may take unpacked: what a reader must hold at once.
LARGEST_ROW_GROUP = 2 << 30


def recognises(path: Path) -> bool:
    """By the name."""
    return path.suffix.lower() in (".parquet", ".pq")


def load(con: duckdb.DuckDBPyConnection, path: Path) -> RawTable:
    """Refuses what declares more than can be meant."""
    name = literal(str(path))
    rows = con.execute(f"SELECT num_rows FROM parquet_file_metadata({name})").fetchall()
    largest = con.execute(
        f"SELECT max(total) FROM (SELECT sum(total_uncompressed_size) AS total FROM parquet_metadata({name}) "
        "GROUP BY row_group_id)"
    ).fetchall()
    if int(rows[0][0]) > MOST_ROWS:
        raise wrong_usage("cannot ingest", str(path), f"it declares {rows[0][0]} rows", "split it into smaller files")
    if largest[0][0] and int(largest[0][0]) > LARGEST_ROW_GROUP:
        why = f"a row group unpacks to {int(largest[0][0])} bytes"
        raise wrong_usage("cannot ingest", str(path), why, "write it with smaller row groups")
    relation = f"read_parquet({name}, hive_partitioning = false)"
    return RawTable(relation, columns_of(con, relation))


PARQUET = SourceKind("parquet", recognises, load)
