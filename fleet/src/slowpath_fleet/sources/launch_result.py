"""What `slowpath launch --json` printed (docs/schemas/launch.json): a row a launch and metric."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from ..errors import wrong_usage
from .json_text import beginning, is_json, whole
from .raw_table import RawTable, SourceKind, from_records

SCHEMA = "slowpath-launch/"
# The metric that launches of the field have too, under its name there.
RENAMED = {"wall": "time_to_ready"}


def recognises(path: Path) -> bool:
    """By the schema that it names."""
    return is_json(path) and beginning(path).startswith("{") and f'"{SCHEMA}' in beginning(path)


def load(con: duckdb.DuckDBPyConnection, path: Path) -> RawTable:
    """Launches of one block stand for one user: they shared the moment. The time is that of the file."""
    text = whole(path, "give fewer launches a file")
    name = hashlib.sha256(text).hexdigest()[:12]
    try:
        return from_records(con, "launch_rows", path, records(json.loads(text), name, path.stat().st_mtime))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"it is no whole result of `launch --json` ({type(error).__name__}: {error})"
        raise wrong_usage("cannot ingest", str(path), why, "make it anew") from error


def records(document: dict[str, Any], name: str, at: float) -> Iterator[dict[str, Any]]:
    """Rows of a result; `name` tells its blocks from those of other results, `at` is in s since 1970."""
    units = document["units"]
    for arm in document["arms"]:
        command = " ".join(arm["command"])
        for block, launch in enumerate(arm["launches"]):
            for metric, value in (launch["measures"] if launch is not None else {}).items():
                yield {
                    "time": at,
                    "user": f"{name}/{block}",
                    "arm": arm["name"],
                    "experiment": f"launch-{name}",
                    "command": command,
                    "metric": RENAMED.get(metric, metric),
                    "value": value,
                    "unit": units.get(metric, "count"),
                }


LAUNCH_RESULT = SourceKind("launch", recognises, load)
