"""OpenTelemetry: points, histograms and spans of a collector's files are rows; what cannot be used is set aside."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Batch, Store

AT = "1772359200000000000"


def attribute(key: str, value: Any) -> dict[str, Any]:
    kind = "boolValue" if isinstance(value, bool) else "stringValue" if isinstance(value, str) else "doubleValue"
    return {"key": key, "value": {kind: value}}


RESOURCE = {
    "attributes": [
        attribute("service.name", "ours"),
        attribute("service.version", "4.2"),
        attribute("device.model.identifier", "M2"),
        attribute("os.version", "9"),
        attribute("user.id", "ann"),
        {"key": "list", "value": {"arrayValue": {"values": []}}},
        "broken",
    ]
}


def metrics(*found: dict[str, Any]) -> dict[str, Any]:
    return {"resourceMetrics": [{"resource": RESOURCE, "scopeMetrics": [{"metrics": list(found)}]}]}


def taken(folder: Path, *documents: Any) -> tuple[list[Any], Batch]:
    source = folder / "otel.jsonl"
    source.write_text("\n".join(map(json.dumps, documents)) + "\n")
    store = Store.create(folder / "s")
    (batch,) = ingest(store, [source], IngestOptions(), lambda line: None)
    if not batch.kept:
        return [], batch
    names = ", ".join(f"'{name}'" for name in store.row_files())
    columns = "metric, round(value, 3), weight, population, version, device, os, user_key IS NOT NULL"
    return duckdb.sql(f"SELECT {columns} FROM read_parquet([{names}]) ORDER BY metric, value").fetchall(), batch


KNOWN = ("ours", "4.2", "M2", "9", True)


def test_a_gauge_and_a_span_are_rows_with_the_columns_of_field_data(tmp_path: Path) -> None:
    gauge = {"name": "start", "unit": "s", "gauge": {"dataPoints": [{"timeUnixNano": AT, "asDouble": 0.5}]}}
    span = {"name": "open", "startTimeUnixNano": AT, "endTimeUnixNano": str(int(AT) + 2_500_000)}
    spans = {"resourceSpans": [{"resource": RESOURCE, "scopeSpans": [{"spans": [span]}]}]}
    found, batch = taken(tmp_path, metrics(gauge), spans)
    assert found == [("open", 2.5, 1, *KNOWN), ("start", 500.0, 1, *KNOWN)]
    assert batch.set_aside == {}


def test_buckets_stand_for_their_counts_at_their_centres(tmp_path: Path) -> None:
    point = {"timeUnixNano": AT, "explicitBounds": [100, 400], "bucketCounts": ["1", "5", "2"]}
    plain = {"name": "a", "unit": "ms", "histogram": {"aggregationTemporality": 1, "dataPoints": [point]}}
    scaled = {"timeUnixNano": AT, "scale": 0, "zeroCount": "3", "positive": {"offset": 2, "bucketCounts": ["7"]}}
    other = {"name": "b", "unit": "ms", "exponentialHistogram": {"aggregationTemporality": 1, "dataPoints": [scaled]}}
    found, _ = taken(tmp_path, metrics(plain, other))
    # Base 2: the bucket is (4, 8].
    expected = [("a", 50.0, 1), ("a", 200.0, 5), ("a", 400.0, 2), ("b", 0.0, 3), ("b", 5.657, 7)]
    assert [one[:3] for one in found] == expected


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("sum", {"aggregationTemporality": 2, "dataPoints": [{"timeUnixNano": AT, "asInt": "5"}]}, "cumulative"),
        ("gauge", {"dataPoints": [{"timeUnixNano": AT}]}, "bad_point"),
        ("gauge", {"dataPoints": [{"timeUnixNano": AT, "asInt": {}}]}, "bad_point"),
        ("gauge", {"dataPoints": [{"asDouble": 5}]}, "null_time"),
        ("gauge", {"dataPoints": [{"timeUnixNano": AT, "asDouble": "NaN"}]}, "nan"),
        ("histogram", {"dataPoints": [{"timeUnixNano": AT, "explicitBounds": [9, 1], "bucketCounts": [1, 1, 1]}]}, ""),
        ("histogram", {"dataPoints": [{"timeUnixNano": AT, "bucketCounts": [5]}]}, "bad_point"),
        ("exponentialHistogram", {"dataPoints": [{"timeUnixNano": AT, "scale": 10**9}]}, "bad_point"),
    ],
)
def test_points_that_cannot_be_used_are_counted(tmp_path: Path, kind: str, data: Any, reason: str) -> None:
    found, batch = taken(tmp_path, metrics({"name": "a", "unit": "ms", kind: data}))
    assert found == [] and batch.set_aside == {reason or "bad_point": 1}


def test_what_is_no_request_is_counted_and_the_rest_is_kept(tmp_path: Path) -> None:
    gauge = {"name": "start", "gauge": {"dataPoints": [{"timeUnixNano": AT, "asInt": "3"}]}, "unit": "By"}
    found, batch = taken(tmp_path, metrics(gauge), [1], {"resourceMetrics": 5}, {"x": 1})
    assert [one[:3] for one in found] == [("start", 3.0, 1)] and batch.set_aside == {"not_otlp": 2}
