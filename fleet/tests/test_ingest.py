"""What ingest keeps, what it sets aside, and what a store looks like after it."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slowpath_fleet import cli
from slowpath_fleet.cells import AGGREGATES
from slowpath_fleet.compare import compare
from slowpath_fleet.engine import Engine
from slowpath_fleet.errors import FleetError
from slowpath_fleet.identity import user_bucket, user_key
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Batch, Store


def take(tmp_path: Path, *sources: Path, options: IngestOptions | None = None) -> tuple[Store, list[Batch]]:
    store = Store.create(tmp_path / "store")
    return store, ingest(store, list(sources), options or IngestOptions(), lambda line: None)


def rows(store: Store, columns: str) -> Any:
    names = ", ".join(f"'{name}'" for name in store.row_files())
    return duckdb.sql(
        f"SELECT {columns} FROM read_parquet([{names}], union_by_name=true, hive_partitioning=true) ORDER BY ALL"
    ).fetchall()


def csv(path: Path, *lines: str, head: str = "time,user,device,metric,value") -> Path:
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


GOOD = "2026-03-01T12:00:00Z,u1,M1,time_to_ready,864"


def test_every_bad_row_of_a_csv_is_set_aside_with_its_reason(tmp_path: Path) -> None:
    bad = {
        "nan": "2026-03-01,u1,M1,time_to_ready,NaN",
        "infinite": "2026-03-01,u1,M1,time_to_ready,-inf",
        "negative": "2026-03-01,u1,M1,time_to_ready,-1",
        "null_value": "2026-03-01,u1,M1,time_to_ready,",
        "not_a_number": "2026-03-01,u1,M1,time_to_ready,fast",
        "null_time": ",u1,M1,time_to_ready,1",
        "bad_time": "yesterday,u1,M1,time_to_ready,1",
        "null_metric": "2026-03-01,u1,M1,,1",
        "null_user": "2026-03-01,,M1,time_to_ready,1",
        "too_large": "2026-03-01,u1,M1,time_to_ready,1e250",
        "malformed_row": "2026-03-01,u1",
    }
    _, (batch,) = take(tmp_path, csv(tmp_path / "a.csv", GOOD, *bad.values()))
    assert batch.set_aside == dict.fromkeys(sorted(bad), 1)
    assert (batch.rows, batch.kept) == (len(bad) + 1, 1)


def test_parquet_keeps_its_types_and_judges_them_alike(tmp_path: Path) -> None:
    table = pa.table(
        {
            "time": pa.array([1772366400, 1772366400000, None, 1772366400], pa.int64()),
            "user_id": [1, 2, 3, 4],
            "metric": ["time_to_ready"] * 4,
            "value": [1.0, float("nan"), 3.0, None],
            "battery": [80, 81, 82, 83],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    store, (batch,) = take(tmp_path, tmp_path / "a.parquet")
    assert batch.set_aside == {"nan": 1, "null_time": 1, "null_value": 1}
    assert rows(store, "day::VARCHAR, user_key, user_bucket, battery") == [
        ("2026-03-01", user_key("1"), user_bucket("1"), "80")
    ]


def test_a_column_of_the_wrong_type_is_no_number_and_not_a_crash(tmp_path: Path) -> None:
    table = pa.table({"time": ["2026-03-01"], "user": ["a"], "metric": ["m"], "value": pa.array([[1, 2]])})
    pq.write_table(table, tmp_path / "a.parquet")
    _, (batch,) = take(tmp_path, tmp_path / "a.parquet")
    assert (batch.kept, batch.set_aside) == (0, {"not_a_number": 1})


def test_json_lines_and_arrays_keep_unknown_keys_and_count_broken_lines(tmp_path: Path) -> None:
    one = {
        "time": "2026-03-01 10:00:00",
        "user": "a",
        "metric": "time_to_ready",
        "value": 1.5,
        "unit": "s",
        "a/b~c": "x",
    }
    (tmp_path / "a.jsonl").write_text(
        json.dumps(one) + "\nnonsense\n[1]\n" + json.dumps(one | {"value": float("nan")}) + "\n"
    )
    (tmp_path / "b.json").write_text(json.dumps([one | {"user": "b"}]))
    store, (lines, array) = take(tmp_path, tmp_path / "a.jsonl", tmp_path / "b.json")
    assert lines.set_aside == {"nan": 1, "not_json": 2}
    assert array.kept == 1
    assert rows(store, 'value, "a/b~c"') == [(1500.0, "x"), (1500.0, "x")]


def test_a_metric_has_one_unit_and_rows_with_another_are_set_aside(tmp_path: Path) -> None:
    head = "time,user,metric,value,unit"
    first = csv(tmp_path / "a.csv", "2026-03-01,a,m,1,s", "2026-03-01,a,m,1,bytes", "2026-03-01,b,m,2,ms", head=head)
    second = csv(tmp_path / "b.csv", "2026-03-01,a,m,1,bytes", "2026-03-01,a,m,1,furlong", head=head)
    store, (one, two) = take(tmp_path, first, second)
    assert one.set_aside == {"unit_conflict": 1} and store.manifest.units == {"m": "ms"}
    assert two.set_aside == {"unit_conflict": 1, "unknown_unit": 1}


def test_the_same_bytes_are_taken_once(tmp_path: Path) -> None:
    source = csv(tmp_path / "a.csv", GOOD)
    store, added = take(tmp_path, source)
    assert len(added) == 1 and not ingest(store, [source], IngestOptions(), lambda line: None)


def test_a_second_source_leaves_the_first_ones_aggregates_untouched(tmp_path: Path) -> None:
    store, (first,) = take(tmp_path, csv(tmp_path / "a.csv", GOOD))
    cells = Path(store.aggregate_file("cells", first))
    before = cells.stat().st_mtime_ns
    ingest(store, [csv(tmp_path / "b.csv", GOOD.replace("u1", "u2"))], IngestOptions(), lambda line: None)
    assert cells.stat().st_mtime_ns == before and len(store.manifest.batches) == 2


def test_a_result_of_launch_becomes_a_row_a_launch_and_metric(tmp_path: Path) -> None:
    arm = {
        "name": "base",
        "command": ["/bin/true"],
        "launches": [{"position": 0, "measures": {"wall": 2e6, "cpu": 1e6}}, None],
    }
    document = {
        "schema": "slowpath-launch/1",
        "units": {"wall": "ns", "cpu": "ns"},
        "arms": [arm, arm | {"name": "cold"}],
    }
    (tmp_path / "launch.json").write_text(json.dumps(document))
    store, (batch,) = take(tmp_path, tmp_path / "launch.json")
    assert batch.kept == 4
    assert rows(store, "arm, metric, value, command")[1] == ("base", "time_to_ready", 2.0, "/bin/true")


def test_a_snapshot_of_histograms_becomes_weighted_rows(tmp_path: Path) -> None:
    one = {
        "name": "Startup",
        "device": "M1",
        "buckets": [{"low": 100, "high": 121, "count": 7}, {"low": 0, "high": 1, "count": 0}],
    }
    bad = {"name": "Startup", "buckets": [{"low": 5, "high": 1, "count": 7}]}
    with gzip.open(tmp_path / "uma.json.gz", "wt") as file:
        json.dump({"histograms": [one, bad, "x"]}, file)
    store, (batch,) = take(tmp_path, tmp_path / "uma.json.gz")
    assert batch.set_aside == {"bad_bucket": 1, "not_a_histogram": 1}
    assert batch.launches == 7 and rows(store, "round(value), weight, user_key") == [(110.0, 7, None)]


def recording(folder: Path, ready: int | None) -> Path:
    folder.mkdir()
    (folder / "faults").mkdir()
    faults = {"ts": [20_000_000, 20_000_000, 30_000_000], "kind": ["major", "minor", "major"]}
    pq.write_table(pa.table(faults), folder / "faults" / "0.parquet")
    manifest = {
        "created": "2026-03-01T00:00:00Z",
        "host": {"kernel": "6.1", "machine": "x86_64", "memory_bytes": 2**31},
        "clock": {"monotonic": 5, "realtime": 1772366400_000000000},
        "command": ["/usr/bin/app"],
        "started": 5,
        "launch": {"released": 10_000_000, "ready": ready},
        "segments": [
            {"table": "faults", "file": "faults/0.parquet", "rows": 3, "bytes": 1},
            {"table": "opens", "file": "../x"},
        ],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_a_recording_gives_its_launch_and_its_causes(tmp_path: Path) -> None:
    good, never = recording(tmp_path / "r1", 874_000_000), recording(tmp_path / "r2", None)
    store, (one, two) = take(tmp_path, good, never)
    assert (one.kept, two.set_aside) == (2, {"never_ready": 1})
    assert rows(store, "metric, value, ram")[-1] == ("time_to_ready", 864.0, "2 GiB")


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("time,user,metric", "no column 'value'"),
        ("user,metric,value", "no column 'time'"),
        ("time,user,value", "no column 'metric'"),
        ("time,user,user_id,metric,value", "both are 'user'"),
        (",".join(["time", "user", "metric", "value", *(f"c{n}" for n in range(10_000))]), "more than 256"),
    ],
)
def test_a_source_that_cannot_be_understood_is_refused_with_what_why_and_remedy(
    tmp_path: Path, head: str, problem: str
) -> None:
    with pytest.raises(FleetError) as error:
        take(tmp_path, csv(tmp_path / "a.csv", head=head))
    assert problem in str(error.value) and error.value.code == 2 and error.value.remedy


def test_columns_can_be_chosen_and_named(tmp_path: Path) -> None:
    head = ",".join(["when", "user", "value", *(f"c{n}" for n in range(300))])
    source = csv(tmp_path / "a.csv", ",".join(["2026-03-01", "u", "1", *("x" for _ in range(300))]), head=head)
    store, (batch,) = take(tmp_path, source, options=IngestOptions({"when": "time"}, ["c7"], "startup"))
    assert batch.dimensions == {"c7": 1} and store.manifest.units == {"startup": "ms"}


INTERNAL = {
    "of queries": "user_ metric_ value_ unit_ at_ time_ text_ fault_ weight_ usable_ n_ side_ group_ d0_ d1",
    "in capitals": "USER_ VALUE_ Day Weight Bin REASON User_Key Places Made Json",
    "of stored rows": "day at weight bin reason user_key user_bucket place n made json dimension kept unit__ _",
    "of sources": "__weight __fault",
    "of sources, in capitals": "__WEIGHT __FAULT",
}


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("names", INTERNAL.values(), ids=INTERNAL.keys())
def test_a_column_of_the_data_is_never_taken_for_one_of_a_query(tmp_path: Path, names: str, kind: str) -> None:
    columns = ["time", "user", "metric", "value", "unit", *names.split()]
    odd = [f"x{n % 2}" for n in range(80)]
    data = [["2026-03-01", f"anna{n}", "m", str(100 + n), "ms", *([odd[n]] * len(columns[5:]))] for n in range(80)]
    source = tmp_path / f"a.{kind}"
    if kind == "csv":
        source.write_text("\n".join(",".join(one) for one in [columns, *data]))
    elif kind == "jsonl":
        source.write_text("\n".join(json.dumps(dict(zip(columns, one, strict=True))) for one in data))
    else:
        pq.write_table(pa.table(dict(zip(columns, map(list, zip(*data, strict=True)), strict=True))), source)
    store, (batch,) = take(tmp_path, source)
    # A reader of JSON has its own `__fault` and leaves that of the data out.
    dropped = kind == "jsonl" and "__fault" in names.lower()
    assert batch.kept == 80 and len(batch.dimensions) == len(columns) - 5 - dropped
    for stored in (tmp_path / "store").rglob("*.parquet"):
        cells = {str(cell) for row in pq.read_table(stored).to_pylist() for cell in row.values()}
        assert not [cell for cell in cells if "anna" in cell], "the store holds the name of a user"
    engine = Engine(store)
    for dimension in batch.dimensions:
        found = compare(store, engine, dimension, None, [("50", 0.5)], None).result
        assert {row.value: (row.n, row.users) for row in found.rows} == {"x0": (40, 40), "x1": (40, 40)}, dimension


def test_nobody_else_can_read_a_store_and_queries_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "spill").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    previous = os.umask(0o022)
    try:
        words = ["ingest", str(csv(tmp_path / "a.csv", GOOD)), "-o", str(tmp_path / "store")]
        assert cli.main(words) == 0
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(previous)
    store = tmp_path / "store"
    assert not [path for path in (store, *store.rglob("*")) if path.stat().st_mode & 0o077]
    engine = Engine(Store.open(store))
    spill = Path(str(engine.connection.con.execute("SELECT current_setting('temp_directory')").fetchall()[0][0]))
    assert spill.parent == tmp_path / "spill" and spill.stat().st_mode & 0o777 == 0o700
    with pytest.raises(duckdb.PermissionException):
        engine.connection.con.execute("SELECT * FROM read_csv('/etc/passwd')")
    with pytest.raises(duckdb.Error, match="locked"):
        engine.connection.con.execute("SET enable_external_access = true")
    engine.close()
    assert not list((tmp_path / "spill").iterdir()) and not list((tmp_path / "work").iterdir())


def test_what_an_interrupted_ingest_moved_and_did_not_list_is_removed_by_the_next(tmp_path: Path) -> None:
    store, _ = take(tmp_path, csv(tmp_path / "a.csv", GOOD))
    kept = set(store.directory.rglob("*.parquet"))
    outside = tmp_path / "outside.parquet"
    outside.write_text("mine")
    for name in ("rows/day=2026-03-02/0_0.parquet", "cells/0.parquet", "groups/0.parquet"):
        (store.directory / name).parent.mkdir(exist_ok=True)
        (store.directory / name).write_text("left")
    (store.directory / "rows" / "link.parquet").symlink_to(outside)
    ingest(store, [csv(tmp_path / "b.csv", GOOD.replace("u1", "u2"))], IngestOptions(), lambda line: None)
    found = set(store.directory.rglob("*.parquet"))
    assert kept < found and len(found) == 2 * len(kept) and outside.read_text() == "mine"


@pytest.mark.parametrize("folder", ["rows", "rows/day=2026-03-09", *AGGREGATES])
def test_nothing_is_removed_or_written_where_a_link_in_a_store_leads(tmp_path: Path, folder: str) -> None:
    store, _ = take(tmp_path, csv(tmp_path / "a.csv", GOOD))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.parquet").write_text("mine")
    place = store.directory / folder
    if place.exists():
        place.rename(tmp_path / "moved")
    place.symlink_to(elsewhere)
    with pytest.raises(FleetError, match="it is a link"):
        ingest(store, [csv(tmp_path / "b.csv", GOOD.replace("u1", "u2"))], IngestOptions(), lambda line: None)
    assert [file.name for file in elsewhere.iterdir()] == ["mine.parquet"]


def test_a_second_source_keeps_the_case_of_the_columns_that_the_store_has(tmp_path: Path) -> None:
    head = "time,user,metric,value,{}"
    line = "2026-03-01,a,m,1,x"
    one, two = (csv(tmp_path / f"{name}.csv", line, head=head.format(name)) for name in ("Chip", "chip"))
    store, _ = take(tmp_path, one, two)
    assert store.dimensions() == {"Chip": 1}
    assert [row.n for row in compare(store, Engine(store), "Chip", None, [("50", 0.5)], None).result.rows] == [2]


def test_a_directory_with_other_files_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(FleetError, match="holds other files"):
        Store.create(tmp_path)
