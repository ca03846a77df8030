"""A recording directory (docs/schemas/manifest.json): its launch, and the causes that it counted."""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from ..errors import wrong_usage
from ..sql_text import literal
from .json_text import whole
from .raw_table import FAULT, RawTable, SourceKind, from_records

MANIFEST = "manifest.json"
# A page as recordings count them, whatever pages their kernel has (docs/reference/recording-format.md).
PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Cause:
    """A metric that one table tells."""

    metric: str
    unit: str
    table: str
    # The probe that the table is of: declarations in crates/capture name the tables of their records.
    probe: str
    # Its value, over all rows of the table; `{in_launch}` and `{in_tree}` stand for conditions on them.
    value: str


CAUSES = (
    # What `slowpath check` counts under this name (crates/budget/src/responsible.rs); rows with a `call` are no opens.
    Cause(
        "denied_opens",
        "count",
        "opens",
        "open",
        f"count(*) FILTER (result IN ({-errno.EACCES}, {-errno.EPERM}) AND call IS NULL AND {{in_launch}})",
    ),
    Cause("major_faults", "count", "faults", "fault", "count(*) FILTER (kind = 'major' AND {in_launch})"),
    # The same of `cold_bytes`: new data are written, not read.
    Cause(
        "cold_bytes",
        "bytes",
        "page_cache",
        "page_cache",
        "coalesce(sum(pages) FILTER (op = 'add' AND asker <> 'write' AND {in_launch} AND {in_tree}), 0)"
        f" * {PAGE_BYTES}",
    ),
)
# A column that recordings of earlier versions lack.
OPTIONAL = "SELECT NULL::VARCHAR AS call WHERE false"


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


def in_launch(manifest: dict[str, Any]) -> str:
    """SQL: whether a row is from the release of exec to ready, or to the end where the launch never was ready."""
    launch = manifest["launch"] or {}
    ready = launch.get("ready")
    ends = {">=": launch.get("released"), "<=": manifest.get("ended") if ready is None else ready}
    return " AND ".join(["true", *(f"ts {side} {int(end)}" for side, end in ends.items() if end is not None)])


def segments(path: Path, manifest: dict[str, Any], table: str) -> list[Path] | None:
    """The files of a table; `None` where its rows are not known, or only some of them."""
    files = [path / part["file"] for part in manifest["segments"] if part["table"] == table]
    there = all(file.resolve().is_relative_to(path.resolve()) and file.is_file() for file in files)
    return files if there else None


def parquet(files: list[Path]) -> str:
    """SQL: all rows of these files, be they of several versions."""
    return f"read_parquet([{', '.join(literal(str(file)) for file in files)}], union_by_name = true)"


def in_tree(path: Path, manifest: dict[str, Any]) -> str | None:
    """SQL: whether a row is of a process that was recorded; `None` where these are not known.

    As in `Processes` of crates/analysis. Where none was recorded, every row is.
    """
    tables = [segments(path, manifest, table) for table in ("forks", "execs", "exits")]
    known = [files for files in tables if files is not None]
    if len(known) < len(tables):
        return None
    processes = " UNION ".join(f"SELECT pid, start FROM {parquet(files)}" for files in known if files)
    return f"(pid, start) IN ({processes})" if processes else "true"


def saw_none(manifest: dict[str, Any], cause: Cause) -> bool:
    """Whether a table without a segment says that there was nothing: a recorder writes no segment without rows.

    Its probe was attached, the recording ended in order, and no row was lost; losses of `any` kind may be of these rows
    (as in `Losses` of crates/tables). `not_run` is no such loss: it counts events of the whole machine, which are
    seldom the launch's.
    """
    attached = any(
        probe["name"] == cause.probe and probe["state"] == "attached" for probe in manifest.get("probes") or []
    )
    lost = any(
        count > 0 and kind.rsplit(".", 1)[-1] in (cause.table, "any") and not kind.startswith("not_run.")
        for kind, count in (manifest.get("losses") or {}).items()
    )
    return attached and not lost and manifest.get("ended") is not None


def causes(con: duckdb.DuckDBPyConnection, path: Path, manifest: dict[str, Any]) -> list[tuple[str, str, float]]:
    """(metric, unit, value) for what the tables can tell: denied opens, major faults, bytes new in the page cache.

    A cause that was looked for and did not occur is 0, and one that is not known is left out: without its zeros its
    quantiles would be those of the launches that have it.
    """
    found = []
    for cause in CAUSES:
        files = segments(path, manifest, cause.table)
        of_tree = in_tree(path, manifest) if "{in_tree}" in cause.value else ""
        if files is None or of_tree is None:
            continue
        if not files:
            found += [(cause.metric, cause.unit, 0.0)] if saw_none(manifest, cause) else []
            continue
        rows = f"({OPTIONAL} UNION ALL BY NAME SELECT * FROM {parquet(files)})"
        try:
            sql = f"SELECT {cause.value.format(in_launch=in_launch(manifest), in_tree=of_tree)} FROM {rows}"
            value = con.execute(sql).fetchall()[0][0]
        except duckdb.Error:
            # Another version of the format: then this cause is not known.
            continue
        if value is not None:
            found.append((cause.metric, cause.unit, float(value)))
    return found


RECORDING = SourceKind("recording", recognises, load)
