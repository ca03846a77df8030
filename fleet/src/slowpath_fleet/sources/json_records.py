"""JSON lines, or an array of objects: a launch an object."""

from __future__ import annotations

from pathlib import Path

import duckdb

from ..errors import wrong_usage
from ..schema import MOST_COLUMNS
from ..sql_text import identifier, literal
from .json_text import beginning, is_json
from .raw_table import FAULT, RawTable, SourceKind

# An object may have so many bytes.
LARGEST_OBJECT = 16 << 20


def load(con: duckdb.DuckDBPyConnection, path: Path) -> RawTable:
    """Lines that are no JSON objects are kept with a fault.

    `NaN` and `Infinity`, which Python writes and JSON has not, are such lines: they become the fault `not_json` as a
    whole line, for nothing else in the line can be trusted to be what it says.
    """
    form = "array" if beginning(path).startswith("[") else "newline_delimited"
    objects = (
        f"read_json_objects({literal(str(path))}, format = '{form}', ignore_errors = {str(form != 'array').lower()}, "
        f"maximum_object_size = {LARGEST_OBJECT})"
    )
    keys = con.execute(
        f"SELECT DISTINCT unnest(json_keys(json)) AS key FROM {objects} WHERE json_type(json) = 'OBJECT' "
        f"LIMIT {20 * MOST_COLUMNS}"
    ).fetchall()
    names = sorted(str(row[0]) for row in keys if row[0] and str(row[0]).lower() != FAULT)
    if len(names) >= 20 * MOST_COLUMNS:
        raise wrong_usage("cannot ingest", str(path), "its objects have thousands of keys", "write flat records")
    fields = "".join(f", json ->> {literal(pointer(name))} AS {identifier(name)}" for name in names)
    fault = "CASE WHEN json IS NULL OR json_type(json) <> 'OBJECT' THEN 'not_json' END"
    return RawTable(
        f"(SELECT {fault} AS {FAULT}{fields} FROM {objects})",
        {FAULT: "VARCHAR"} | dict.fromkeys(names, "VARCHAR"),
        frozenset((FAULT,)),
    )


def pointer(name: str) -> str:
    """A key as an RFC 6901 pointer."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


JSON_RECORDS = SourceKind("json", is_json, load)
