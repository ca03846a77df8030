"""Histogram snapshots as Chromium's UMA writes them: counts in buckets, without users.

    {"name": "Startup.FirstPaint", "buckets": [{"low": 600, "high": 700, "count": 12}, ...], "time": ..., "device": ...}

One object, one a line, an array, or `{"histograms": [...]}`. A bucket becomes a row at its geometric centre that
stands for `count` launches, so nothing of it is more exact than its bucket is wide; the last, open bucket stands at its
lower end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from .json_text import beginning, first_record, is_json, parsing, whole
from .raw_table import FAULT, WEIGHT, RawTable, SourceKind, from_records

# Launches of a bucket: beyond it a double does not hold them exactly, and no bucket has so many.
MOST_LAUNCHES = 2**53
# Keys of a histogram that are no dimensions of its launches, and those that this module sets itself.
NOT_KEPT = ("name", "count", "sum", "flags", "pid", "value", FAULT, WEIGHT)
# Upper ends from here on mean "without end" (UMA: INT_MAX).
ENDLESS = 2**31 - 1


def recognises(path: Path) -> bool:
    """By the first object."""
    if not is_json(path) or not path.is_file():
        return False
    first = first_record(path)
    if isinstance(first, dict):
        return "buckets" in first or "histograms" in first
    return first is None and '"histograms"' in beginning(path)[:200]


def load(con: duckdb.DuckDBPyConnection, path: Path) -> RawTable:
    """Objects that are no histograms are kept with a fault."""
    text = whole(path, "split it by day")
    with parsing(path):
        rows = (row for one in histograms(text) for row in records(one, path.stat().st_mtime))
        return from_records(con, "snapshot_rows", path, rows)


def histograms(text: bytes) -> list[Any]:
    """The objects of a file in any of its forms."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        lines = [line for line in text.splitlines() if line.strip()]
        return [parsed(line) for line in lines]
    if isinstance(document, dict) and "histograms" in document:
        document = document["histograms"]
    return document if isinstance(document, list) else [document]


def parsed(line: bytes) -> Any:
    """A line; None where it is no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def records(one: Any, at: float) -> Iterator[dict[str, Any]]:
    """Rows of one histogram; `at`, in s since 1970, is the time of those that name none."""
    if not isinstance(one, dict) or not isinstance(one.get("buckets"), list):
        yield {"value": None, FAULT: "not_a_histogram"}
        return
    base = {
        key: value for key, value in one.items() if isinstance(value, str | int | float) and key.lower() not in NOT_KEPT
    }
    base["metric"] = str(one.get("metric", one.get("name", "")))
    base.setdefault("time", at)
    yield from (base | bucket_row(bucket) for bucket in one["buckets"])


def bucket_row(bucket: Any) -> dict[str, Any]:
    """Value, weight or fault of a bucket."""
    try:
        low, high, count = float(bucket["low"]), float(bucket["high"]), float(bucket["count"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return {"value": None, FAULT: "bad_bucket"}
    if not (0 <= low < high and math.isfinite(low) and 0 <= count <= MOST_LAUNCHES and count == int(count)):
        return {"value": None, FAULT: "bad_bucket"}
    if low == 0:
        return {"value": 0.0 if high <= 1 else high / 2, WEIGHT: count}
    return {"value": low if high >= ENDLESS else math.sqrt(low * high), WEIGHT: count}


HISTOGRAM_SNAPSHOT = SourceKind("histograms", recognises, load)
