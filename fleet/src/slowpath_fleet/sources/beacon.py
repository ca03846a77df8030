"""Beacons of pages and apps (docs/fleet.md, `beacon/slowpath-beacon.js`): a row a metric.

    {"schema": "slowpath-beacon/1", "time": ..., "user": ..., "network": "4g", "metrics": {"first_paint": 812.5, ...}}

An object a line, or an array. `time` is that of the page view; every other key but `metrics` is a column. Values are in
ms unless the beacon has a key `unit`.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from ..errors import wrong_usage
from ..schema import MOST_COLUMNS
from ..sql_text import identifier, literal
from .json_records import LARGEST_OBJECT, pointer
from .json_text import beginning, first_record, is_json
from .raw_table import FAULT, RawTable, SourceKind

SCHEMA = "slowpath-beacon/"
NOT_KEPT = ("schema", "metrics", "metric", "value")


def recognises(path: Path) -> bool:
    """By the first object."""
    first = first_record(path) if is_json(path) and path.is_file() else None
    return isinstance(first, dict) and str(first.get("schema", "")).startswith(SCHEMA)


def load(con: duckdb.DuckDBPyConnection, path: Path) -> RawTable:
    """Lines that are no beacons, and beacons without a metric, are kept with a fault."""
    form = "array" if beginning(path).startswith("[") else "newline_delimited"
    objects = (
        f"read_json_objects({literal(str(path))}, format = '{form}', ignore_errors = {str(form != 'array').lower()}, "
        f"maximum_object_size = {LARGEST_OBJECT})"
    )
    limit = 20 * MOST_COLUMNS
    keys = con.execute(
        f"SELECT DISTINCT unnest(json_keys(json)) AS key FROM {objects} WHERE json_type(json) = 'OBJECT' LIMIT {limit}"
    ).fetchall()
    names = sorted(str(row[0]) for row in keys if row[0] and str(row[0]).lower() not in (*NOT_KEPT, FAULT))
    if len(names) >= limit - len(NOT_KEPT):
        raise wrong_usage("cannot ingest", str(path), "its beacons have thousands of keys", "send few keys")
    fields = "".join(f", json ->> {literal(pointer(name))} AS {identifier(name)}" for name in names)
    beacon = f"coalesce(json_type(json) = 'OBJECT' AND starts_with(json ->> '/schema', '{SCHEMA}'), false)"
    measured = "coalesce(json_type(json -> '/metrics') = 'OBJECT' AND len(json_keys(json, '/metrics')) > 0, false)"
    key = "replace(replace(metric, '~', '~0'), '/', '~1')"
    # A beacon without a metric stays as a row, to be counted.
    metrics = f"unnest(CASE WHEN {beacon} AND {measured} THEN json_keys(json, '/metrics') ELSE [NULL::VARCHAR] END)"
    fault = f"CASE WHEN NOT {beacon} THEN 'not_a_beacon' WHEN metric IS NULL THEN 'no_metrics' END"
    return RawTable(
        f"(SELECT {fault} AS {FAULT}, metric, json ->> ('/metrics/' || {key}) AS value{fields} "
        f"FROM (SELECT json, {metrics} AS metric FROM {objects}))",
        {FAULT: "VARCHAR", "metric": "VARCHAR", "value": "VARCHAR"} | dict.fromkeys(names, "VARCHAR"),
        frozenset((FAULT,)),
    )


BEACON = SourceKind("beacon", recognises, load)
