"""`slowpath fleet ingest`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import wrong_usage
from ..ingest import IngestOptions, ingest
from ..printed import IngestResult, IngestSource
from ..progress import Progress
from ..sources import expand
from ..store import Store
from ..text_table import table
from .command import Command, Outcome


def arguments(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("data", nargs="+", metavar="DATA", type=Path, help="files, recordings, or directories of them")
    parser.add_argument(
        "-o", "--output", required=True, metavar="STORE", type=Path, help="the store; made if it is not there"
    )
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW", help="name of a column of the data")
    parser.add_argument(
        "--keep", metavar="COLUMNS", help="of the columns that are not known, keep only these (default: all)"
    )
    parser.add_argument("--metric", metavar="NAME", help="what is measured, for data without a column `metric`")


def run(options: argparse.Namespace, progress: Progress) -> Outcome:
    """Adds the data."""
    keep = options.keep.split(",") if options.keep is not None else None
    chosen = IngestOptions(dict(rename(word) for word in options.rename), keep, options.metric)
    for path in options.data:
        expand(path)
    store = Store.create(options.output)
    offered = sum(len(expand(path)) for path in options.data)
    added = ingest(store, options.data, chosen, progress)
    set_aside: dict[str, int] = {}
    for batch in added:
        for reason, n in batch.set_aside.items():
            set_aside[reason] = set_aside.get(reason, 0) + n
    result = IngestResult(
        store=str(options.output),
        rows=sum(batch.rows for batch in added),
        kept=sum(batch.kept for batch in added),
        set_aside=dict(sorted(set_aside.items())),
        sources=[IngestSource(batch.source, batch.rows, batch.kept, batch.set_aside) for batch in added],
        skipped=offered - len(added),
    )
    return Outcome(result, shown)


def rename(word: str) -> tuple[str, str]:
    """OLD=NEW."""
    old, equals, new = word.partition("=")
    if not (old and equals and new):
        raise wrong_usage("cannot rename", word, "it is not OLD=NEW", "write --rename client=user")
    return old, new


def shown(result: IngestResult) -> str:
    """For a terminal."""
    lines = [f"{result.kept:,} of {result.rows:,} rows kept in {result.store}"]
    if result.skipped:
        lines.append(f"{result.skipped} sources were ingested before and left out")
    if result.set_aside:
        rows = [[reason, f"{n:,}"] for reason, n in sorted(result.set_aside.items(), key=lambda item: -item[1])]
        lines += ["", table(["set aside", "rows"], rows)]
    return "\n".join(lines)


INGEST = Command("ingest", "import field data into a store", arguments, run, IngestResult)
