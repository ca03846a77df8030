"""The lines of `slowpath artifacts guard` are rows as they are: outcomes are dimensions that a comparison takes."""

import json
from pathlib import Path
from typing import Any

import duckdb

from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Store

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "guard-line.json"

DENIED = {"path": "/c", "access": "read", "rule": "other_bits", "words": "other bits lack r"}


def line(user: str | None, outcome: str, **more: Any) -> str:
    """One line, with every field of the published schema."""
    one: dict[str, Any] = {
        "schema": "slowpath-guard/1",
        "time": "2026-03-01T10:00:00Z",
        "start_id": "00",
        "policy": "shop",
        "version": "4.2.1",
        "artifact": "index",
        "path": "/c",
        "family": None,
        "uid": 99001,
        "needed_by": "99001",
        "outcome": outcome,
        "found": "unreadable",
        "denied_by": None,
        "change": None,
        "reason": None,
        "repair": None,
        "repair_status": None,
        "repair_ms": None,
        "repair_reason": None,
        "check_ms": 0.06,
        "metric": "check_ms",
        "value": 2.4,
        "unit": "ms",
        **more,
    }
    published = set(json.loads(SCHEMA.read_text())["properties"])
    assert set(one) == published - {"user"}
    return json.dumps(one if user is None else {**one, "user": user})


def test_lines_with_and_without_a_user_and_a_denial_are_kept(tmp_path: Path) -> None:
    source = tmp_path / "starts.jsonl"
    lines = [line("ann", "unreadable", denied_by=DENIED), line("bob", "repaired", repair="done", repair_status=0)]
    source.write_text("\n".join(lines) + "\n")
    store = Store.create(tmp_path / "store")
    (batch,) = ingest(store, [source], IngestOptions(), lambda line: None)
    assert (batch.rows, batch.kept, batch.set_aside) == (2, 2, {})
    names = ", ".join(f"'{name}'" for name in store.row_files())
    found = duckdb.sql(f"SELECT outcome, value FROM read_parquet([{names}]) ORDER BY outcome").fetchall()
    assert [outcome for outcome, _ in found] == ["repaired", "unreadable"]
    alone = tmp_path / "alone.jsonl"
    alone.write_text(line(None, "usable") + "\n")
    (batch,) = ingest(Store.create(tmp_path / "other"), [alone], IngestOptions(), lambda line: None)
    assert (batch.kept, batch.set_aside) == (1, {})
