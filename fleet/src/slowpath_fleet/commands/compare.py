"""`slowpath fleet compare`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import quantile_text
from ..backends import started
from ..compare import compare
from ..pages.results import compare_parts
from ..printed import CompareResult
from ..progress import Progress
from ..quantile_plot import plot
from ..store import Store
from ..text_table import difference, measured, relative, table
from .command import Command, Outcome, store_argument


def arguments(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    store_argument(parser)
    parser.add_argument(
        "--by", default="population", metavar="COLUMN", help="whose values are compared (default: population)"
    )
    parser.add_argument("--quantiles", default="50,75,95,99", metavar="Q", help="in percent (default: 50,75,95,99)")
    parser.add_argument("--baseline", metavar="VALUE", help="compare all with this value (default: every pair)")


def run(options: argparse.Namespace, progress: Progress) -> Outcome:
    """Compares."""
    quantiles = quantile_text.parse(options.quantiles)
    store = Store.open(Path(options.store))
    engine = started(store, options.backend)
    try:
        progress("comparing")
        found = compare(store, engine, options.by, options.metric, quantiles, options.baseline).result
    finally:
        engine.close()
    return Outcome(found, shown, compare_parts)


def shown(result: CompareResult) -> str:
    """For a terminal: values, the picture, differences."""
    names = list(result.rows[0].quantiles) if result.rows else []
    rows = [
        [row.value, f"{row.n:,}", f"{row.users:,}" if row.users is not None else "-"]
        + [measured(row.quantiles[name]) for name in names]
        for row in result.rows
    ]
    parts = [f"{result.metric} by {result.by}", table([result.by, "n", "users", *(f"p{name}" for name in names)], rows)]
    values = {row.value: {name: one.value or 0.0 for name, one in row.quantiles.items()} for row in result.rows}
    if result.rows:
        parts.append(plot(values, result.rows[0].quantiles[names[0]].unit))
    changes = [
        [f"{one.b} - {one.a}", f"p{one.quantile}", difference(one.difference), relative(one.relative)]
        for one in result.differences
    ]
    if changes:
        parts.append(table(["difference", "", "absolute", "relative"], changes, left=2))
    parts.append("\n".join(result.notes + [f"no {one.what}: {one.reason}; {one.remedy}" for one in result.unavailable]))
    return "\n\n".join(part for part in parts if part)


COMPARE = Command("compare", "quantiles of the values of a column, with intervals", arguments, run, CompareResult)
