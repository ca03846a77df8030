"""OpenTelemetry: what a collector's file exporter writes (OTLP/JSON), a request a line or one document.

A point of a gauge or a sum is a row; a bucket of a histogram is a row that stands for its count, at its geometric
centre; a span is a row whose value is its duration and whose metric is its name. Attributes of the resource, the point
and the span are columns; those with a name of OpenTelemetry's conventions become the column that field data have
(`COLUMNS`). Cumulative sums and histograms cannot be taken: each point holds those before it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from .histogram_snapshot import MOST_LAUNCHES, parsed
from .json_text import beginning, first_record, is_json, parsing, whole
from .raw_table import FAULT, WEIGHT, RawTable, SourceKind, from_records

KINDS = ("resourceMetrics", "resourceSpans")
# Attribute of OpenTelemetry's semantic conventions -> column of field data.
COLUMNS = {
    "service.name": "population",
    "service.version": "version",
    "app.build_id": "version",
    "device.model.identifier": "device",
    "device.model.name": "device",
    "host.type": "device",
    "host.cpu.model.name": "soc",
    "os.version": "os",
    "network.connection.type": "network",
    "network.connection.subtype": "network",
    "user.id": "user",
    "enduser.id": "user",
    "enduser.pseudo.id": "user",
    "app.installation.id": "user",
    "device.id": "user",
    "android.app.start.type": "start",
    "user_agent.synthetic.type": "robot",
    "feature_flag.key": "experiment",
    "feature_flag.result.variant": "arm",
}
# Unit of UCUM, as OpenTelemetry writes it -> unit here.
UNITS = {"ms": "ms", "s": "s", "us": "us", "ns": "ns", "By": "bytes", "1": "ratio", "%": "percent", "": "count"}
CUMULATIVE = (2, "2", "AGGREGATION_TEMPORALITY_CUMULATIVE")
SCALARS = ("stringValue", "boolValue", "intValue", "doubleValue")
RESERVED = ("metric", "value", "unit", "time", FAULT, WEIGHT)


def recognises(path: Path) -> bool:
    """By the key that the document or its first line begins with."""
    if not is_json(path) or not path.is_file():
        return False
    first = first_record(path)
    if isinstance(first, dict):
        return any(kind in first for kind in KINDS)
    return first is None and any(f'"{kind}"' in beginning(path)[:200] for kind in KINDS)


def load(con: duckdb.DuckDBPyConnection, path: Path) -> RawTable:
    """Points that cannot be used are kept with a fault."""
    text = whole(path, "rotate the collector's files")
    with parsing(path):
        return from_records(con, "otlp_rows", path, (row for one in documents(text) for row in records(one)))


def documents(text: bytes) -> list[Any]:
    """Requests of a file."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [parsed(line) for line in text.splitlines() if line.strip()]


def entries(holder: Any, key: str) -> list[dict[str, Any]]:
    """The objects of a list; empty where there is none."""
    found = holder.get(key) if isinstance(holder, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def records(document: Any) -> Iterator[dict[str, Any]]:
    """Rows of a request."""
    if not isinstance(document, dict) or not any(kind in document for kind in KINDS):
        yield {"value": None, FAULT: "not_otlp"}
        return
    for resource in entries(document, "resourceMetrics"):
        base = columns(resource.get("resource"))
        for scope in entries(resource, "scopeMetrics"):
            for metric in entries(scope, "metrics"):
                yield from points(metric, base)
    for resource in entries(document, "resourceSpans"):
        base = columns(resource.get("resource"))
        for scope in entries(resource, "scopeSpans"):
            for span in entries(scope, "spans"):
                yield base | columns(span) | span_row(span)


def columns(holder: Any) -> dict[str, Any]:
    """Attributes as columns; lists and maps are left out."""
    found: dict[str, Any] = {}
    for one in entries(holder, "attributes"):
        value = one.get("value")
        if not isinstance(value, dict):
            continue
        scalar = next(
            (value[key] for key in ("stringValue", "boolValue", "intValue", "doubleValue") if key in value), None
        )
        name = COLUMNS.get(str(one.get("key")), str(one.get("key")))
        if isinstance(scalar, str | int | float) and name.lower() not in RESERVED:
            found.setdefault(name, str(scalar).lower() if isinstance(scalar, bool) else scalar)
    if "robot" in found:
        # `bot` and `test` are both no people.
        found["robot"] = "true"
    return found


def points(metric: dict[str, Any], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of a metric."""
    unit = str(metric.get("unit", ""))
    named = base | {"metric": str(metric.get("name", "")), "unit": UNITS.get(unit, unit)}
    for kind, reader in READERS.items():
        data = metric.get(kind)
        if not isinstance(data, dict):
            continue
        for point in entries(data, "dataPoints"):
            row = named | columns(point) | {"time": seconds(point.get("timeUnixNano"))}
            if kind != "gauge" and data.get("aggregationTemporality") in CUMULATIVE:
                yield row | {"value": None, FAULT: "cumulative"}
            else:
                yield from (row | one for one in safely(reader, point))


def safely(reader: Any, point: dict[str, Any]) -> list[dict[str, Any]]:
    """Values of a point, or a fault."""
    try:
        return list(reader(point))
    except (KeyError, TypeError, ValueError, OverflowError, IndexError):
        return [{"value": None, FAULT: "bad_point"}]


def seconds(nanoseconds: Any) -> float | None:
    """A time in s since 1970; OTLP writes 64-bit numbers as text."""
    try:
        return int(nanoseconds) / 1e9
    except (TypeError, ValueError, OverflowError):
        return None


def number(point: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A point of a gauge or a sum."""
    yield {"value": float(point["asDouble"] if "asDouble" in point else int(point["asInt"]))}


def weighted(low: float, high: float, count: Any) -> dict[str, Any]:
    """A bucket."""
    launches = int(count)
    if not (0 <= launches <= MOST_LAUNCHES):
        raise ValueError(count)
    centre = math.sqrt(low * high) if low > 0 and math.isfinite(high) else (low if low > 0 else high / 2)
    return {"value": centre, WEIGHT: launches}


def histogram(point: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Buckets with explicit bounds; the first begins at 0 and the last has no end."""
    bounds = [float(one) for one in point.get("explicitBounds", [])]
    counts = point["bucketCounts"]
    if len(counts) != len(bounds) + 1 or bounds != sorted(bounds) or not bounds:
        raise ValueError("bounds")
    for low, high, count in zip([0.0, *bounds], [*bounds, math.inf], counts, strict=True):
        yield weighted(max(low, 0.0), high, count)


def exponential(point: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Buckets (base^i, base^(i+1)] with base = 2^(2^-scale)."""
    scale = int(point["scale"])
    if not -10 <= scale <= 20:
        raise ValueError("scale")
    positive = point.get("positive", {})
    for at, count in enumerate(positive.get("bucketCounts", []), int(positive.get("offset", 0))):
        yield weighted(2.0 ** (at * 2.0**-scale), 2.0 ** ((at + 1) * 2.0**-scale), count)
    zeros = int(point.get("zeroCount", 0))
    if zeros:
        yield {"value": 0.0, WEIGHT: zeros}
    negative = sum(int(one) for one in point.get("negative", {}).get("bucketCounts", []))
    if negative:
        yield {"value": None, FAULT: "negative"}


READERS = {"gauge": number, "sum": number, "histogram": histogram, "exponentialHistogram": exponential}


def span_row(span: dict[str, Any]) -> dict[str, Any]:
    """Its duration."""
    row = {"metric": str(span.get("name", "")), "unit": "ms", "time": seconds(span.get("startTimeUnixNano"))}
    try:
        return row | {"value": (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) / 1e6}
    except (KeyError, TypeError, ValueError, OverflowError):
        return row | {"value": None, FAULT: "bad_point"}


OTLP = SourceKind("otlp", recognises, load)
