"""`slowpath query`: one SELECT on a recording."""

from __future__ import annotations

import argparse
import csv
import io
import math
from pathlib import Path
from typing import Any

from ..printed import QueryColumn, QueryResult
from ..progress import Progress
from ..query.recorded import Recorded
from ..query.tables import TABLES
from ..query.views import VIEWS
from ..text_table import table
from .command import Command, Outcome


def arguments(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("store", metavar="RECORDING", help="a recording")
    parser.add_argument("sql", nargs="?", metavar="SQL", help="one SELECT; without it the views are listed")
    parser.add_argument("--csv", action="store_true", help="print comma-separated values")


def run(options: argparse.Namespace, progress: Progress) -> Outcome:
    """Asks."""
    with Recorded(Path(options.store)) as recorded:
        if options.sql is None:
            columns, rows = listing(recorded)
        else:
            progress("asking")
            columns, rows = recorded.ask(options.sql)
    result = QueryResult(
        columns=[QueryColumn(name, kind) for name, kind in columns],
        rows=[[plain(value) for value in row] for row in rows],
    )
    return Outcome(result, as_csv if options.csv else shown)


def listing(recorded: Recorded) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
    """Every view and table, with its columns and what a row is."""
    about = {view.name: view.about for view in VIEWS}
    rows: list[tuple[Any, ...]] = []
    for name in [*(view.name for view in VIEWS), "recording", *TABLES]:
        columns, _ = recorded.ask(f"SELECT * FROM {name} LIMIT 0")
        rows.append((name, ", ".join(column for column, _ in columns), about.get(name, "a table of the recording")))
    return [("name", "VARCHAR"), ("columns", "VARCHAR"), ("what a row is", "VARCHAR")], rows


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    return str(value)


def text(value: Any) -> str:
    """A value for people."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def shown(result: QueryResult) -> str:
    """A table. The listing of views is not cut."""
    names = [column.name for column in result.columns]
    if names == ["name", "columns", "what a row is"]:
        return "\n".join(f"{row[0]}: {row[2]}\n    {row[1]}" for row in result.rows)
    if not result.rows:
        return "no rows: " + ", ".join(names)
    return table(names, [[text(value) for value in row] for row in result.rows])


def as_csv(result: QueryResult) -> str:
    """RFC 4180, with text that a spreadsheet would take for a formula behind an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([harmless(column.name) for column in result.columns])
    writer.writerows([["" if value is None else harmless(value) for value in row] for row in result.rows])
    return out.getvalue().rstrip("\n")


def harmless(value: Any) -> Any:
    """Text that is no formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


QUERY = Command("query", "one SELECT on a recording", arguments, run, QueryResult)
