"""A recording directory (docs/schemas/manifest.json): its launch, and the causes that it counted."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import duckdb

from ..errors import wrong_usage
from ..sql_text import literal
from .json_text import whole
from .raw_table import FAULT, RawTable, SourceKind, from_records

MANIFEST = "manifest.json"


def recognises(path: Path) -> bool:
    """A directory with a manifest."""
    return path.is_dir() and (path / MANIFEST).is_file()


def load(con: duckdb.DuckDBPyConnection, path: Path) -> RawTable:
    """One row for the time to ready and one for each cause; a launch that never was ready is a fault."""
    try:
        manifest = json.loads(whole(path / MANIFEST, "record again"))
        rows = [launch_row(manifest)] + [
            base(manifest) | {"metric": metric, "value": value, "unit": unit}
            for metric, unit, value in causes(con, path, manifest)
        ]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        why = f"its manifest cannot be read ({type(error).__name__}: {error})"
        raise wrong_usage("cannot ingest", str(path), why, "record again, or run `slowpath analyze` on it") from error
    return from_records(con, "recording_rows", path, rows)


def base(manifest: dict[str, Any]) -> dict[str, Any]:
    """What all rows of a recording have. The recording itself stands for the user."""
    host, clock = manifest["host"], manifest["clock"]
    command = [str(word) for word in manifest["command"]]
    return {
        "time": (clock["realtime"] + manifest["started"] - clock["monotonic"]) / 1e9,
        "user": f"recording {manifest['created']} {manifest['started']}",
        "command": " ".join(command),
        "os": f"Linux {host['kernel']}",
        "soc": str(host["machine"]),
        "ram": f"{max(1, round(host['memory_bytes'] / 2**30))} GiB",
    }


def launch_row(manifest: dict[str, Any]) -> dict[str, Any]:
    """Time from the release of exec to ready, in ms."""
    launch = manifest["launch"] or {}
    row = base(manifest) | {"metric": "time_to_ready", "unit": "ms", FAULT: None}
    if launch.get("ready") is None:
        return row | {"value": None, FAULT: "never_ready"}
    return row | {"value": (launch["ready"] - launch["released"]) / 1e6}


def causes(con: duckdb.DuckDBPyConnection, path: Path, manifest: dict[str, Any]) -> list[tuple[str, str, float]]:
    """(metric, unit, value) for what the tables can tell: denied opens, major faults, bytes read from storage."""
    queries = {
        "opens": ("denied_opens", "count", f"count(*) FILTER (result IN ({-errno.EACCES}, {-errno.EPERM}))"),
        "faults": ("major_faults", "count", "count(*) FILTER (kind = 'major')"),
        "block_io": ("cold_bytes", "bytes", "coalesce(sum(bytes) FILTER (read AND in_tree), 0)"),
    }
    found = []
    for table, (metric, unit, expression) in queries.items():
        files = [str(path / part["file"]) for part in manifest["segments"] if part["table"] == table]
        inside = [
            name for name in files if Path(name).resolve().is_relative_to(path.resolve()) and Path(name).is_file()
        ]
        if not inside:
            continue
        names = ", ".join(literal(name) for name in inside)
        try:
            value = con.execute(f"SELECT {expression} FROM read_parquet([{names}])").fetchall()[0][0]
        except duckdb.Error:
            # Another version of the format, or a segment that is gone: then this cause is not known.
            continue
        if value is not None:
            found.append((metric, unit, float(value)))
    return found


RECORDING = SourceKind("recording", recognises, load)
