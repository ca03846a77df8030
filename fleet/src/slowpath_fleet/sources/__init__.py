"""Kinds of field data, one a file; the first that recognises a path reads it."""

from __future__ import annotations

from pathlib import Path

from ..errors import wrong_usage
from .beacon import BEACON
from .delimited import DELIMITED
from .histogram_snapshot import HISTOGRAM_SNAPSHOT
from .json_records import JSON_RECORDS
from .launch_result import LAUNCH_RESULT
from .otlp import OTLP
from .parquet import PARQUET
from .raw_table import FAULT, WEIGHT, RawTable, SourceKind
from .recording import MANIFEST, RECORDING

SOURCES: tuple[SourceKind, ...] = (
    RECORDING,
    PARQUET,
    DELIMITED,
    LAUNCH_RESULT,
    HISTOGRAM_SNAPSHOT,
    BEACON,
    OTLP,
    JSON_RECORDS,
)

__all__ = ["FAULT", "SOURCES", "WEIGHT", "RawTable", "SourceKind", "expand", "kind_of"]


def kind_of(path: Path) -> SourceKind | None:
    """The kind that reads a path."""
    return next((kind for kind in SOURCES if kind.recognises(path)), None)


def expand(path: Path) -> list[Path]:
    """Files and recordings that a path stands for: itself, or what a directory holds, in the order of their names."""
    if not path.exists():
        raise wrong_usage("cannot ingest", str(path), "there is no such file", "check the name")
    if not path.is_dir() and not path.is_file():
        raise wrong_usage("cannot ingest", str(path), "it is no regular file", "copy its content into one")
    if not path.is_dir() or (path / MANIFEST).is_file():
        return [path]
    found: list[Path] = []
    for inside in sorted(path.iterdir()):
        if inside.is_symlink() or inside.name.startswith((".", "_")):
            continue
        if inside.is_dir():
            found += expand(inside)
        elif inside.is_file() and kind_of(inside) is not None:
            found.append(inside)
    return found
