"""`slowpath fleet watch`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import errors, quantile_text
from ..backends import started
from ..pages.watched import watch_parts
from ..printed import Change, WatchResult
from ..progress import Progress
from ..sparkline import by_day, sparkline
from ..store import Store
from ..text_table import cut, measured, probability, relative, table
from ..watch import WatchOptions, watch
from .command import Command, Outcome, store_argument

# Series in a terminal, after those that changed.
MOST_SHOWN = 12


def arguments(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    store_argument(parser)
    parser.add_argument("--since", metavar="WHEN", help="first day: 30d up to the last one, or a date (default: 60d)")
    parser.add_argument("--by", metavar="COLUMNS", help="columns whose values are watched (default: all)")
    parser.add_argument("--quantiles", default="50,95", metavar="Q", help="in percent (default: 50,95)")
    parser.add_argument("--fdr", type=float, default=0.01, metavar="RATE", help="false-discovery rate (default: 0.01)")
    parser.add_argument(
        "--min-effect", type=float, default=1.0, metavar="PERCENT", help="smallest change that is listed (default: 1)"
    )
    parser.add_argument("--better", choices=("lower", "higher"), default="lower", help="of the metric (default: lower)")
    parser.add_argument("--alert", action="store_true", help="exit code 1 where something became worse")


def run(options: argparse.Namespace, progress: Progress) -> Outcome:
    """Looks for changes."""
    if not 0 < options.fdr < 1:
        raise errors.wrong_usage("cannot use --fdr", str(options.fdr), "it is no rate between 0 and 1", "write 0.01")
    if not 0 <= options.min_effect < 1000:
        raise errors.wrong_usage("cannot use --min-effect", str(options.min_effect), "it is not 0..1000", "write 1")
    store = Store.open(Path(options.store))
    engine = started(store, options.backend)
    try:
        progress("watching")
        chosen = WatchOptions(
            options.metric,
            options.since,
            options.by.split(",") if options.by else None,
            quantile_text.parse(options.quantiles),
            options.fdr,
            options.min_effect / 100,
            options.better == "lower",
        )
        found = watch(store, engine, chosen)
    finally:
        engine.close()
    worse = any(one.direction == "worse" for one in found.changes)
    return Outcome(found, shown, watch_parts, errors.VERDICT_FAILED if options.alert and worse else errors.DONE)


def described(where: dict[str, str]) -> str:
    """Conditions of a slice."""
    return ", ".join(f"{cut(column)} = {cut(value)}" for column, value in where.items()) or "all launches"


def row(one: Change) -> list[str]:
    """A line of the changes."""
    return [
        described(one.where),
        f"p{one.quantile}",
        one.day,
        one.direction,
        measured(one.before),
        measured(one.after),
        relative(one.relative),
        probability(one.q),
        one.version or "-",
    ]


def shown(result: WatchResult) -> str:
    """For a terminal: changes, then series."""
    parts = [f"{cut(result.metric)} from {result.since} to {result.until}"]
    if result.changes:
        head = ["change of", "", "from", "", "before", "after", "relative", "q", "with version"]
        parts.append(table(head, [row(one) for one in result.changes], left=4))
    elif result.tested:
        parts.append(f"No change found in {result.tested:,} series.")
    lines = []
    for one in result.series[: max(MOST_SHOWN, len({str(change.where) for change in result.changes}) + 1)]:
        for name in one.days[-1].quantiles if one.days else ():
            known = {point.day: point.quantiles[name].value for point in one.days}
            line = sparkline(by_day(known, result.since, result.until))
            lines.append([described(one.where), f"p{name}", line, measured(one.days[-1].quantiles[name])])
    parts.append(table(["by day", "", "", "last day"], lines, left=3))
    tail = [f"{result.tested:,} series tested, {result.folded:,} more changed no more than all launches did."]
    tail += [*result.notes, *(f"no {one.what}: {one.reason}; {one.remedy}" for one in result.unavailable)]
    parts.append("\n".join(tail))
    return "\n\n".join(parts)


WATCH = Command("watch", "daily series of every slice, and the days on which they changed", arguments, run, WatchResult)
