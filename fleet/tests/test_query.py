"""`slowpath query`: views over a recording, and that a query reads it and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slowpath_fleet.cli import main, run_words
from slowpath_fleet.commands.query import QUERY
from slowpath_fleet.errors import FleetError
from slowpath_fleet.printed import QueryResult
from slowpath_fleet.query.recorded import Recorded
from slowpath_fleet.query.tables import TABLES, TYPES
from slowpath_fleet.query.views import VIEWS

DOCS = Path(__file__).parents[2] / "docs"
ROWS: dict[str, list[dict[str, Any]]] = {
    "execs": [
        {"ts": 5, "pid": 7, "start": 1, "filename": "/bin/app", "command_line": "app x"},
        {"ts": 6, "pid": 8, "start": 2, "filename": "C:\\a b\\other.exe", "command_line": "=1+1"},
    ],
    "files": [{"dev": 1, "ino": 5, "path": "/data"}, {"dev": 1, "ino": 5, "path": "/data"}],
    "reads": [
        {"ts": 10, "duration": 2_000_000, "pid": 7, "start": 1, "tid": 7, "dev": 1, "ino": 5, "result": 4096},
        {"ts": 20, "duration": 1_000_000, "pid": 7, "start": 1, "tid": 7, "dev": 1, "ino": 5, "result": -5},
    ],
    "page_cache": [
        {
            "ts": ts,
            "pid": 7,
            "start": 1,
            "tid": 7,
            "op": "add",
            "dev": 1,
            "ino": 5,
            "page": page,
            "pages": 2,
            "asker": "read",
        }
        for ts, page in [(10, 8), (11, 4), (12, 6)]
    ],
    "frames": [{"id": 0, "kind": "file", "dev": 1, "ino": 5}, {"id": 1, "kind": "file"}, {"id": 2, "kind": "kernel"}],
    "symbols": [
        {"frame": 0, "level": 0, "function": "main"},
        {"frame": 1, "level": 0, "function": "copy\u202e\n;x"},
        {"frame": 2, "level": 0, "function": "asm_exc_page_fault"},
    ],
    "stacks": [
        {"id": 0, "parent": None, "frame": 0},
        {"id": 1, "parent": 0, "frame": 1},
        {"id": 2, "parent": 1, "frame": 2},
    ],
    "cpu_samples": [
        {"ts": ts, "pid": 7, "start": 1, "tid": 7, "stack": stack} for ts, stack in [(1, 2), (2, 2), (3, 1), (4, 0)]
    ],
    "faults": [
        {"ts": 3, "duration": 2_000_000, "pid": 7, "start": 1, "kind": "major", "stack": 1},
        {"ts": 4, "duration": None, "pid": 7, "start": 1, "kind": "minor", "stack": None},
    ],
    "off_cpu": [
        {
            "ts": 1,
            "duration": 3_000_000,
            "pid": 7,
            "start": 1,
            "tid": 7,
            "reason": "futex",
            "runnable": 500_000,
            "waker_tid": 9,
        },
    ],
    "memory_calls": [
        {
            "ts": ts,
            "pid": 7,
            "start": 1,
            "tid": 7,
            "call": "mmap",
            "length": 4096,
            "result": 0,
            "shrinks": False,
            "stack": 1,
        }
        for ts in (1, 2)
    ],
    "opens": [{"ts": 1, "pid": 7, "start": 1, "tid": 7, "path": "/secret", "result": -13}],
}
ARROW = {"UBIGINT": pa.uint64(), "UINTEGER": pa.uint32(), "BIGINT": pa.int64(), "INTEGER": pa.int32(),
         "BOOLEAN": pa.bool_(), "VARCHAR": pa.string()}  # fmt: skip


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    folder = tmp_path / "recording"
    folder.mkdir()
    segments = []
    for table, rows in ROWS.items():
        (folder / table).mkdir()
        columns = {name: pa.array([row.get(name) for row in rows], ARROW[kind]) for name, kind in TABLES[table].items()}
        pq.write_table(pa.table(columns), folder / table / "000000.parquet")
        segments.append({"table": table, "file": f"{table}/000000.parquet"})
    manifest = {
        "command": ["/bin/app", "x"],
        "started": 5,
        "ended": 2_000_005,
        "launch": {"released": 10, "ready": 1_500_010, "ready_when": "exit", "outcome": "ready"},
        "segments": [*segments, {"table": "files", "file": "../outside.parquet"}],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    pq.write_table(pa.table({"path": ["/outside"]}), tmp_path / "outside.parquet")
    return folder


def ask(recording: Path, sql: str) -> list[list[Any]]:
    found = run_words(["query", "--", str(recording), sql]).result
    assert isinstance(found, QueryResult)
    return found.rows


def test_the_tables_are_those_of_the_recording_format() -> None:
    text = (DOCS / "reference" / "recording-format.md").read_text()
    sections = {one.split("\n")[0].strip(): one for one in text.split("\n## ")[1:]}
    found = {
        name: {column: TYPES[kind] for column, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", section, re.M)}
        for name, section in sections.items()
    }
    assert {name: columns for name, columns in found.items() if columns} == TABLES


def test_views_add_up_to_the_rows(recording: Path) -> None:
    assert ask(recording, "SELECT time_to_ready_ms, recorded_ms, command FROM launches") == [[1.5, 2.0, "/bin/app x"]]
    assert ask(recording, "SELECT path, reads, bytes, ms FROM reads_by_file") == [["/data", 2, 4096, 3.0]]
    assert ask(recording, "SELECT path, bytes, insertions FROM storage_by_file") == [["/data", 3 * 8192, 3]]
    rows = ask(
        recording, "SELECT process, function, samples, share FROM cpu_by_function ORDER BY samples DESC, function"
    )
    hostile = "copy\u202e\n;x"
    assert rows == [["app", "asm_exc_page_fault", 2, 0.5], ["app", hostile, 1, 0.25], ["app", "main", 1, 0.25]]
    rows = ask(recording, "SELECT function, faults, major, ms FROM faults_by_function ORDER BY major DESC")
    assert rows == [[hostile, 1, 1, 2.0], [None, 1, 0, None]]
    assert ask(recording, "SELECT process, reason, waits, ms, runnable_ms FROM off_cpu_by_thread") == [
        ["app", "futex", 1, 3.0, 0.5]
    ]
    assert ask(recording, "SELECT calls, bytes FROM allocations_by_function") == [[2, 8192]]
    assert ask(recording, "SELECT path, times FROM denied_opens") == [["/secret", 1]]
    assert ask(recording, "SELECT name FROM processes ORDER BY pid") == [["app"], ["other.exe"]]
    rows = ask(recording, "SELECT depth, function FROM stack_functions WHERE stack = 2 ORDER BY depth")
    assert rows == [[0, "asm_exc_page_fault"], [1, hostile], [2, "main"]]
    assert ask(recording, "SELECT count(*) FROM forks") == [[0]]


def test_memory_that_a_call_adds_is_by_what_it_grew(tmp_path: Path) -> None:
    # Call, length, length before, whether brk shrank, result.
    calls = [
        ("mmap", 4096, None, False, 0),
        ("mmap", 1 << 40, None, False, -12),
        ("mremap", 1 << 20, 1 << 18, False, 0),
        ("mremap", 1 << 18, 1 << 20, False, 0),
        ("mremap", 8192, 8192, False, 0),
        ("mremap", 1 << 30, 4096, False, -12),
        ("brk", 65536, None, False, 0),
        ("brk", 65536, None, True, 0),
        # The end of the heap was asked for.
        ("brk", 0, None, False, 0),
        ("munmap", 4096, None, False, 0),
    ]
    names = ("call", "length", "old_length", "shrinks", "result")
    rows = [dict(zip(names, call, strict=True)) for call in calls]
    (tmp_path / "memory_calls").mkdir()
    columns = {
        name: pa.array([row.get(name) for row in rows], ARROW[kind]) for name, kind in TABLES["memory_calls"].items()
    }
    pq.write_table(pa.table(columns), tmp_path / "memory_calls" / "000000.parquet")
    segments = [{"table": "memory_calls", "file": "memory_calls/000000.parquet"}]
    (tmp_path / "manifest.json").write_text(json.dumps({"segments": segments}))
    added = 4096 + (1 << 20) - (1 << 18) + 65536
    assert ask(tmp_path, "SELECT calls, bytes FROM allocations_by_function") == [[3, added]]


def examples() -> list[str]:
    return re.findall(r"```sql\n(.*?)```", (DOCS / "query.md").read_text(), re.S)


def test_the_documented_queries_run_and_find_what_is_there(recording: Path) -> None:
    assert len(examples()) == 10
    answers = [ask(recording, sql) for sql in examples()]
    assert all(answers)
    assert answers[5] == [["/data", 1, 2]]
    assert answers[9] == [["copy\u202e\n;x", 2, 0, 0.0, 1], ["main", 0, 0, 0.0, 1]]


def test_every_view_is_documented() -> None:
    text = (DOCS / "query.md").read_text()
    assert [view.name for view in VIEWS if f"`{view.name}`" not in text] == []


def test_a_recording_without_rows_has_every_table_and_view(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with Recorded(tmp_path) as recorded:
        for name in [*TABLES, *(view.name for view in VIEWS)]:
            _, rows = recorded.ask(f"SELECT * FROM {name}")
            assert rows == [] or name == "launches"


@pytest.mark.parametrize(
    "sql",
    [
        "DROP VIEW faults",
        "COPY (SELECT 1) TO '{recording}/faults/000000.parquet'",
        "COPY faults TO '/tmp/slowpath-query-test.csv'",
        "CREATE TABLE x AS SELECT 1",
        "ATTACH '{outside}/x.db'",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "SELECT 1; SELECT 2",
        "",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_parquet('{outside}/outside.parquet')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT path FROM files WHERE path = '/outside' AND error('none')",
        "SELECT nothing FROM faults",
        "SELEC",
    ],
)
def test_what_is_no_query_or_reads_another_file_is_refused(recording: Path, sql: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in recording.rglob("*")}
    words = sql.replace("{recording}", str(recording)).replace("{outside}", str(recording.parent))
    if "error('none')" in words:
        assert ask(recording, "SELECT path FROM files WHERE path = '/outside'") == []
        return
    with pytest.raises(FleetError) as refused:
        ask(recording, words)
    assert refused.value.code == 2
    assert {path: path.stat().st_mtime_ns for path in recording.rglob("*")} == before


def test_hostile_text_moves_no_cursor_and_starts_no_formula(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT command_line, function FROM processes, functions WHERE frame = 1 AND pid = 8"
    assert main(["query", "--csv", str(recording), sql]) == 0
    assert capsys.readouterr().out == "command_line,function\n'=1+1,copy\\u202e\\n;x\n"
    assert main(["query", str(recording), sql]) == 0
    assert "\u202e" not in capsys.readouterr().out
    assert main(["query", "--json", str(recording), sql]) == 0
    printed = capsys.readouterr().out
    assert "\u202e" not in printed and json.loads(printed)["rows"] == [["=1+1", "copy\u202e\n;x"]]


def test_the_listing_names_every_view_with_its_columns(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", str(recording)]) == 0
    printed = capsys.readouterr().out
    assert all(f"{view.name}: {view.about}" in printed for view in VIEWS)
    assert "process, pid, function, faults, major, ms" in printed


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("[]")
    for path in [tmp_path, tmp_path / "none"]:
        with pytest.raises(FleetError):
            ask(path, "SELECT 1")


def test_the_command_is_one_of_the_package() -> None:
    assert QUERY.result is QueryResult and duckdb.StatementType.SELECT is not None
