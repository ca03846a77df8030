"""Beacons of pages: those that a real Chromium sends are launches, and what is none is set aside."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb

from slowpath_fleet import cli
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Batch, Store

IN_CHROMIUM = Path(__file__).parents[1] / "beacon" / "in_chromium.py"


def taken(folder: Path, source: Path) -> tuple[Store, Batch]:
    store = Store.create(folder / "s")
    (batch,) = ingest(store, [source], IngestOptions(), lambda line: None)
    return store, batch


def rows(store: Store, columns: str) -> list[Any]:
    names = ", ".join(f"'{name}'" for name in store.row_files())
    found: list[Any] = duckdb.sql(f"SELECT {columns} FROM read_parquet([{names}]) ORDER BY ALL").fetchall()
    return found


def test_page_views_of_a_real_chromium_become_launches_with_their_paint_times(tmp_path: Path) -> None:
    output = tmp_path / "beacons.jsonl"
    subprocess.run([sys.executable, IN_CHROMIUM, output, "--visits", "2", "--slow", "700"], check=True, timeout=150)
    beacons = [json.loads(line) for line in output.read_text().splitlines()]
    assert [one["user"] for one in beacons] == ["visitor-0", "visitor-1"]
    for one in beacons:
        at = one["metrics"]
        assert one["schema"] == "slowpath-beacon/1" and one["navigation"] == "navigate"
        assert 0 < at["response_start"] <= at["first_paint"] <= at["first_contentful_paint"]
        assert at["response_start"] <= at["dom_interactive"] <= at["dom_content_loaded"] <= at["load"]
    # The page of the second visit was served 700 ms late, and version 2.
    assert beacons[1]["version"] == "2" and beacons[1]["metrics"]["response_start"] >= 700
    store, batch = taken(tmp_path, output)
    assert batch.set_aside == {} and batch.kept == sum(len(one["metrics"]) for one in beacons)
    assert "first_contentful_paint" in store.manifest.units
    assert rows(store, "metric, version, navigation, start")[0] == ("dom_content_loaded", "1", "navigate", "page")


def test_what_is_no_beacon_is_set_aside(tmp_path: Path) -> None:
    good = {"schema": "slowpath-beacon/1", "time": 1772359200000.0, "user": "u", "metrics": {"a/b~c": 5, "load": -1}}
    lines = [good, {**good, "metrics": {}}, {**good, "schema": "other/1"}, {**good, "metrics": "x"}, [1], 5]
    source = tmp_path / "a.jsonl"
    source.write_text("\n".join(map(json.dumps, lines)) + "\nnot json\n")
    store, batch = taken(tmp_path, source)
    assert batch.set_aside == {"negative": 1, "no_metrics": 2, "not_a_beacon": 4}
    assert rows(store, "metric, value, day::VARCHAR") == [("a/b~c", 5.0, "2026-03-01")]


def test_a_beacon_cannot_take_the_place_of_its_own_metrics(tmp_path: Path) -> None:
    one = {"schema": "slowpath-beacon/1", "time": "2026-03-01", "metric": "x", "value": 9, "metrics": {"load": 7}}
    (tmp_path / "a.json").write_text(json.dumps([one]))
    store, batch = taken(tmp_path, tmp_path / "a.json")
    assert batch.kept == 1 and rows(store, "metric, value") == [("load", 7.0)]


def test_beacons_are_compared_like_all_launches(tmp_path: Path) -> None:
    one = {"schema": "slowpath-beacon/1", "time": "2026-03-01", "network": "4g", "metrics": {"load": 7}}
    lines = [json.dumps({**one, "user": f"u{number}"}) for number in range(20)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    taken(tmp_path, tmp_path / "a.jsonl")
    assert cli.main(["compare", str(tmp_path / "s"), "--by", "network", "--metric", "load"]) == 0
