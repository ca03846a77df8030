"""`slowpath fleet slices`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import quantile_text
from ..backends import started
from ..errors import wrong_usage
from ..pages.results import slices_parts
from ..printed import Slice, SlicesResult
from ..progress import Progress
from ..slices import SliceOptions, find_slices, nothing_found
from ..store import Store
from ..text_table import cut, difference, measured, probability, relative, table
from .command import Command, Outcome, store_argument

DEEPEST = 4


def arguments(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    store_argument(parser)
    parser.add_argument("--by", default="population", metavar="COLUMN", help="what is compared (default: population)")
    parser.add_argument("--baseline", metavar="VALUE", help="the value that all others are compared with")
    parser.add_argument("--quantile", default="95", metavar="Q", help="where the gap is, in percent (default: 95)")
    parser.add_argument(
        "--max-depth", type=int, default=2, metavar="N", help="conditions of a slice at most (default: 2)"
    )
    parser.add_argument("--fdr", type=float, default=0.05, metavar="RATE", help="false-discovery rate (default: 0.05)")
    parser.add_argument("--columns", metavar="COLUMNS", help="columns that slices are made of (default: all)")
    parser.add_argument("--program", metavar="CMD", help="command line of the program, for the recipe")
    parser.add_argument(
        "--state", metavar="FILE", help="artifacts of a machine of the slice (artifacts audit --json), for the recipe"
    )


def run(options: argparse.Namespace, progress: Progress) -> Outcome:
    """Looks for slices."""
    quantiles = quantile_text.parse(options.quantile)
    if len(quantiles) != 1:
        raise wrong_usage(
            "cannot look for slices at", options.quantile, "it is not one quantile", "write --quantile 95"
        )
    if not 1 <= options.max_depth <= DEEPEST:
        raise wrong_usage("cannot use --max-depth", str(options.max_depth), f"it is not 1..{DEEPEST}", "write 2 or 3")
    if not 0 < options.fdr < 1:
        raise wrong_usage("cannot use --fdr", str(options.fdr), "it is no rate between 0 and 1", "write 0.05")
    store = Store.open(Path(options.store))
    engine = started(store, options.backend)
    try:
        progress("counting")
        columns = options.columns.split(",") if options.columns else None
        chosen = SliceOptions(
            options.by,
            options.baseline,
            options.metric,
            quantiles[0],
            options.max_depth,
            options.fdr,
            columns,
            options.program,
            options.state,
        )
        found = find_slices(store, engine, chosen)
    finally:
        engine.close()
    return Outcome(found, shown, slices_parts)


def described(one: Slice) -> str:
    """Conditions of a slice."""
    return ", ".join(f"{cut(column)} = {cut(value)}" for column, value in one.where.items())


def shown(result: SlicesResult) -> str:
    """For a terminal."""
    head = (
        f"{cut(result.metric)} by {cut(result.by)} against {cut(result.baseline)}: gap at p{result.quantile} "
        f"{difference(result.gap)}, launches above {measured(result.threshold)}: {difference(result.excess)}"
    )
    parts = [head]
    if result.slices:
        rows = [
            [
                relative(one.contribution),
                f"{one.within * 100:+.1f}%",
                f"{one.mix * 100:+.1f}%",
                f"{one.n:,}",
                f"{one.users:,}" if one.users is not None else "-",
                probability(one.q),
                "yes" if one.confirmed else "no",
                ("reversal" if one.reversal else ""),
            ]
            for one in result.slices
        ]
        # A slice's text can be long; it stands last and is not cut.
        lines = table(
            ["share of excess", "within", "mix", "n", "users", "q", "confirmed", ""], rows, left=0
        ).splitlines()
        names = ["slice", *(described(one) for one in result.slices)]
        parts.append("\n".join(f"{line}  {name}" for line, name in zip(lines, names, strict=True)))
        top = result.slices[0]
        recipe = [
            f"To see the first here:  {top.recipe}",
            *(f"  {one}" for one in top.recipe_notes),
        ]
        parts.append("\n".join(recipe))
    else:
        parts.append(nothing_found(result.tested))
    for one in result.reversals:
        parts.append(
            f"Simpson's paradox by {cut(one.column)}: {one.total * 100:+.2f} pp as a whole, "
            f"{one.within * 100:+.2f} pp with equal mixes."
        )
    tail = [f"{result.tested:,} combinations tested, {result.folded:,} more are significant through those above."]
    tail += [
        *result.notes,
        *(f"no {one.what}: {one.reason}; {one.remedy}" for one in result.unavailable),
    ]
    parts.append("\n".join(tail))
    return "\n\n".join(parts)


SLICES = Command("slices", "which conditions hold the gap at a quantile", arguments, run, SlicesResult)
