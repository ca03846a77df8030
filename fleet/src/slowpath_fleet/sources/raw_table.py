"""What a source of field data yields: a relation of DuckDB whose rows are not judged yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ..errors import wrong_usage
from ..schema import MOST_COLUMNS

# Column with the reason why a source could not read a row; null where it could.
FAULT = "__fault"
# Column with the number of launches that a row stands for; absent: 1.
WEIGHT = "__weight"
# Columns of a table that is made of records, before those that matter are chosen.
MOST_KEYS = 20 * MOST_COLUMNS
# Bytes of its text and of its cells.
LARGEST_TABLE, CELL = 512 << 20, 8


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


def from_records(con: duckdb.DuckDBPyConnection, name: str, path: Path, records: Iterable[dict[str, Any]]) -> RawTable:
    """A small table from records, each with any of the columns; all but numbers become text.

    FAULT and WEIGHT are the source's own: records must not take these keys from the data. Records are not kept, and
    what they add up to is bounded: a small file can say "so many keys" and "so many rows" of each.
    """
    columns = gathered(path, records)
    arrays: dict[str, pa.Array] = {}
    for column in list(columns):
        cells = columns.pop(column)
        numeric = column != FAULT and all(cell is None or is_number(cell) for cell in cells)
        if not numeric:
            cells = [None if cell is None else str(cell) for cell in cells]
        arrays[column] = pa.array(cells, pa.float64() if numeric else pa.string())
    con.register("registered", pa.table(arrays) if arrays else pa.table({"value": pa.array([], pa.float64())}))
    con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM registered")
    con.unregister("registered")
    return RawTable(name, columns_of(con, name), frozenset((FAULT, WEIGHT)) & set(arrays))


def gathered(path: Path, records: Iterable[dict[str, Any]]) -> dict[str, list[Any]]:
    """Cells by column, None where a record has none."""
    columns: dict[str, list[Any]] = {}
    number, size = 0, 0
    for record in records:
        for key, cell in record.items():
            cells = columns.setdefault(key, [])
            cells += [None] * (number - len(cells))
            cells.append(cell)
            size += len(cell) if isinstance(cell, str) else 0
        number += 1
        if len(columns) > MOST_KEYS:
            raise wrong_usage("cannot ingest", str(path), f"it has more than {MOST_KEYS:,} columns", "send few keys")
        if size + CELL * len(columns) * number > LARGEST_TABLE:
            why = f"its rows take more than {LARGEST_TABLE >> 20} MiB"
            raise wrong_usage("cannot ingest", str(path), why, "split it, or send shorter names and fewer keys")
    for cells in columns.values():
        cells += [None] * (number - len(cells))
    return columns
