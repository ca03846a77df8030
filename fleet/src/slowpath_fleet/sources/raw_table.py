"""What a source of field data yields: a relation of DuckDB whose rows are not judged yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

# Column with the reason why a source could not read a row; null where it could.
FAULT = "__fault"
# Column with the number of launches that a row stands for; absent: 1.
WEIGHT = "__weight"


@dataclass(frozen=True, slots=True)
class RawTable:
    """Rows as the source has them."""

    # SQL that can stand behind FROM.
    relation: str
    # Column -> type of DuckDB.
    columns: dict[str, str]
    # Of FAULT and WEIGHT, those that the source itself added; columns of the data may have these names too.
    added: frozenset[str] = frozenset()
    # Counts rows that the reader itself dropped while the relation was scanned: reason -> count. Asked after a scan.
    dropped: Callable[[], dict[str, int]] = field(default=dict)


@dataclass(frozen=True, slots=True)
class SourceKind:
    """One kind of source: how it is recognised and how it is read."""

    name: str
    recognises: Callable[[Path], bool]
    load: Callable[[duckdb.DuckDBPyConnection, Path], RawTable]


def columns_of(con: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    """Names and types of a relation."""
    return {str(row[0]): str(row[1]) for row in con.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


def is_number(cell: Any) -> bool:
    """Whether a double can hold it; Python's integers can be larger."""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return False
    return isinstance(cell, float) or abs(cell) < 2**1023


def from_records(con: duckdb.DuckDBPyConnection, name: str, records: list[dict[str, Any]]) -> RawTable:
    """A small table from records, each with any of the columns; all but numbers become text.

    FAULT and WEIGHT are the source's own: records must not take these keys from the data.
    """
    columns = list(dict.fromkeys(key for record in records for key in record))
    arrays: dict[str, pa.Array] = {}
    for column in columns:
        cells = [record.get(column) for record in records]
        numeric = column != FAULT and all(cell is None or is_number(cell) for cell in cells)
        if not numeric:
            cells = [None if cell is None else str(cell) for cell in cells]
        arrays[column] = pa.array(cells, pa.float64() if numeric else pa.string())
    con.register("registered", pa.table(arrays) if columns else pa.table({"value": pa.array([], pa.float64())}))
    con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM registered")
    con.unregister("registered")
    return RawTable(name, columns_of(con, name), frozenset((FAULT, WEIGHT)) & set(columns))
