"""Causes of recorded launches: what was looked for and did not occur is 0, and what is not known is no row."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slowpath_fleet.compare import compare
from slowpath_fleet.engine import Engine
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.sources.recording import CAUSES, causes
from slowpath_fleet.store import Store

RELEASED, READY, ENDED = 10_000_000, 874_000_000, 2_000_000_000
PROBES = Path(__file__).parents[2] / "crates" / "capture" / "src"
# Pages that entered for the launch, for another process, as new data, behind ready; and some that left.
PAGE_CACHE: dict[str, Any] = {
    "ts": [RELEASED, 20_000_000, 20_000_000, READY + 1, 20_000_000],
    "pid": pa.array([7, 8, 7, 7, 7], pa.uint32()),
    "start": pa.array([1, 1, 1, 1, 1], pa.uint64()),
    "op": ["add", "add", "add", "add", "delete"],
    "pages": pa.array([10_000, 7, 9, 11, 13], pa.uint64()),
    "asker": ["fault", "fault", "write", "read", "read"],
}
EXECS: dict[str, Any] = {"ts": [RELEASED], "pid": pa.array([7], pa.uint32()), "start": pa.array([1], pa.uint64())}


def recording(folder: Path, tables: dict[str, dict[str, Any]], **differs: Any) -> Path:
    """As `slowpath record` writes it: a table without rows has no segment."""
    segments = []
    for table, columns in tables.items():
        (folder / table).mkdir(parents=True)
        pq.write_table(pa.table(columns), folder / table / "000000.parquet")
        rows = len(next(iter(columns.values())))
        segments.append({"table": table, "file": f"{table}/000000.parquet", "rows": rows, "bytes": 1})
    manifest = {
        "created": f"2026-03-01T00:00:00Z {folder.name}",
        "host": {"kernel": "6.1", "machine": "x86_64", "memory_bytes": 2**31},
        "clock": {"monotonic": 5, "realtime": 1772366400_000000000},
        "command": ["/usr/bin/app"],
        "started": 5,
        "ended": ENDED,
        "launch": {"released": RELEASED, "ready": READY},
        "probes": [{"name": name, "state": "attached"} for name in ("process", "fault", "page_cache", "open")],
        "losses": {},
        "segments": segments,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(manifest | differs))
    return folder


def known(path: Path) -> dict[str, float]:
    """Every cause that is known."""
    with duckdb.connect() as con:
        found = causes(con, path, json.loads((path / "manifest.json").read_text()))
    return {metric: value for metric, _, value in found}


def test_launches_that_read_nothing_count_as_launches_that_read_nothing(tmp_path: Path) -> None:
    recordings = [
        recording(tmp_path / f"r{n}", {"page_cache": PAGE_CACHE, "execs": EXECS} if n < 1 else {}) for n in range(3)
    ]
    store = Store.create(tmp_path / "store")
    ingest(store, recordings, IngestOptions(), lambda line: None)
    (row,) = compare(store, Engine(store), "command", "cold_bytes", [("50", 0.5), ("99", 0.99)], None).result.rows
    assert (row.n, row.quantiles["50"].value) == (3, 0) and row.quantiles["99"].value == pytest.approx(
        40_960_000, rel=0.01
    )


def test_every_cause_names_the_probe_that_records_its_table() -> None:
    for cause in CAUSES:
        declared = (PROBES / cause.probe / "mod.rs").read_text()
        assert f'name: "{cause.probe}"' in declared and f'"{cause.table}", |bytes, to|' in declared


NOTHING = {cause.metric: 0.0 for cause in CAUSES}


def without(*metrics: str) -> dict[str, float]:
    return {metric: value for metric, value in NOTHING.items() if metric not in metrics}


@pytest.mark.parametrize(
    ("differs", "expected"),
    [
        ({}, NOTHING),
        ({"probes": [{"name": "open", "state": "attached"}]}, without("major_faults", "cold_bytes")),
        ({"probes": [{"name": cause.probe, "state": "unavailable"} for cause in CAUSES]}, {}),
        ({"probes": []}, {}),
        # What was lost could have been such rows; `not_run` counts events of the whole machine.
        (
            {"losses": {"opens": 3, "not_written.page_cache": 9, "not_run.faults": 1}},
            without("denied_opens", "cold_bytes"),
        ),
        ({"losses": {"perf.any": 12}}, {}),
        # A recorder that was killed had rows that it did not write.
        ({"ended": None}, {}),
        # There were rows, and they are gone.
        (
            {"segments": [{"table": "page_cache", "file": "page_cache/000000.parquet", "rows": 3}]},
            without("cold_bytes"),
        ),
        ({"segments": [{"table": "opens", "file": "../opens.parquet", "rows": 3}]}, without("denied_opens")),
    ],
    ids=["all", "not asked for", "unavailable", "no probes", "losses", "unknown losses", "killed", "gone", "elsewhere"],
)
def test_a_cause_is_0_only_where_it_would_have_been_seen(
    tmp_path: Path, differs: dict[str, Any], expected: dict[str, float]
) -> None:
    (tmp_path / "opens.parquet").write_bytes(b"")
    assert known(recording(tmp_path / "r", {}, **differs)) == expected


def test_denied_opens_are_those_of_check(tmp_path: Path) -> None:
    # Refused opens, one without the file, one that opened, a refused stat and mkdir, and one behind ready.
    opens = {
        "ts": pa.array([RELEASED, 20_000_000, 20_000_000, 20_000_000, 20_000_000, READY, READY + 1], pa.uint64()),
        "call": [None, None, None, "look", "make_directory", None, None],
        "result": [-13, -2, 3, -13, -13, -1, -13],
    }
    # Recordings of earlier versions hold opens alone, and lack the column.
    earlier = {"ts": opens["ts"], "result": opens["result"]}
    both = [recording(tmp_path / name, {"opens": table}) for name, table in (("new", opens), ("old", earlier))]
    assert [known(path)["denied_opens"] for path in both] == [2, 4]


def test_a_cause_is_0_where_its_table_has_rows_of_others_alone(tmp_path: Path) -> None:
    other = {name: column[1:2] for name, column in PAGE_CACHE.items()}
    faults: dict[str, Any] = {"ts": [RELEASED, READY + 1], "kind": ["minor", "major"]}
    assert known(recording(tmp_path / "r", {"page_cache": other, "execs": EXECS, "faults": faults})) == NOTHING


def test_cold_bytes_of_a_recording_without_processes_are_those_of_all(tmp_path: Path) -> None:
    assert known(recording(tmp_path / "r", {"page_cache": PAGE_CACHE}))["cold_bytes"] == 10_007 * 4096


def test_cold_bytes_are_not_known_where_the_processes_are_gone(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {"page_cache": PAGE_CACHE, "execs": EXECS})
    (folder / "execs" / "000000.parquet").unlink()
    assert "cold_bytes" not in known(folder)
