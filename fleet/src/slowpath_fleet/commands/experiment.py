"""`slowpath fleet experiment`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import errors
from ..backends import started
from ..experiment import ExperimentOptions, analyse
from ..experiment.metrics_file import MetricsFile, MetricWish, read
from ..pages.results import experiment_parts
from ..printed import ExperimentResult, MetricEffect, SampleRatio
from ..progress import Progress
from ..store import Store
from ..text_table import difference, measured, probability, relative, table
from .command import Command, Outcome, store_argument


def arguments(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    store_argument(parser)
    parser.add_argument("--unit", default="user", metavar="COLUMN", help="what was assigned to arms (default: user)")
    parser.add_argument(
        "--metrics", metavar="FILE", type=Path, help="metrics.toml (default: mean, p50, p95 and counts)"
    )
    parser.add_argument("--experiment", metavar="NAME", help="which one, where the data hold several")
    parser.add_argument("--control", metavar="ARM", help="the arm that others are compared with")
    parser.add_argument("--always-valid", action="store_true", help="intervals and p that hold however often one looks")
    parser.add_argument(
        "--planned-units",
        type=float,
        default=10_000,
        metavar="N",
        help="with --always-valid: units at which the intervals are narrowest; fix it before the first look (10000)",
    )


def run(options: argparse.Namespace, progress: Progress) -> Outcome:
    """Judges the experiment; exit code 1 where its sample ratio is not the one of [arms]."""
    if not options.planned_units >= 1:
        raise errors.wrong_usage(
            "cannot use --planned-units", str(options.planned_units), "it is below 1", "write 10000"
        )
    store = Store.open(Path(options.store))
    chosen = read(options.metrics) if options.metrics is not None else MetricsFile()
    if options.metric is not None:
        chosen.metric = [one for one in chosen.metric if one.name == options.metric] or [MetricWish(options.metric)]
    engine = started(store, options.backend)
    try:
        progress("judging")
        wanted = ExperimentOptions(
            options.unit, options.experiment, options.control, chosen, options.always_valid, options.planned_units
        )
        found = analyse(store, engine, wanted)
    finally:
        engine.close()
    ratio = found.sample_ratio
    # What is only assumed fails no verdict.
    code = errors.DONE if ratio.ok or ratio.assumed else errors.VERDICT_FAILED
    return Outcome(found, shown, experiment_parts, code)


def row(one: MetricEffect) -> list[str]:
    """A line of the table."""
    word = {True: "better", False: "worse", None: ""}[one.better]
    arms = [measured(one.arms[one.control]), measured(one.arms[one.arm])]
    changes = [difference(one.difference), relative(one.relative), probability(one.p), probability(one.p_adjusted)]
    return [one.metric, one.statistic, *arms, *changes, one.reason or word]


def verdict(ratio: SampleRatio) -> str:
    """Of the test; that it found nothing proves no assignment."""
    return "no mismatch found" if ratio.ok else "MISMATCH"


def assumption(ratio: SampleRatio) -> str:
    """What the test rests on, where nobody has said it."""
    return " (equal shares assumed; name them in [arms])" if ratio.assumed else ""


def shown(result: ExperimentResult) -> str:
    """For a terminal: the sample ratio, then a table for every arm."""
    users = ", ".join(f"{arm} {n:,}" for arm, n in result.sample_ratio.users.items())
    ratio = result.sample_ratio
    parts = [f"sample ratio: {verdict(ratio)} (p = {probability(ratio.p)}; users: {users}){assumption(ratio)}"]
    for arm in dict.fromkeys(one.arm for one in result.metrics):
        head = ["metric", "", result.control, arm, "change", "relative", "p", "p adjusted", ""]
        parts.append(table(head, [row(one) for one in result.metrics if one.arm == arm], left=2))
    tail = [*result.notes, *(f"no {one.what}: {one.reason}; {one.remedy}" for one in result.unavailable)]
    parts.append("\n".join(tail))
    return "\n\n".join(parts)


EXPERIMENT = Command(
    "experiment", "what an arm changed, and whether that can be trusted", arguments, run, ExperimentResult
)
