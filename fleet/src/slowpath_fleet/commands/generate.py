"""`slowpath fleet generate`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

import msgspec

from .. import generator
from ..errors import wrong_usage
from ..progress import Progress
from .command import Command, Outcome


class GenerateResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `slowpath fleet generate`."""

    schema: Literal["slowpath-fleet-generate/1"] = "slowpath-fleet-generate/1"
    file: str
    rows: int
    users: int
    seed: int
    slow_slice: dict[str, str]
    slowdown: float


def arguments(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("-o", "--output", required=True, metavar="FILE", type=Path, help="Parquet file to write")
    parser.add_argument(
        "--users", type=int, default=20_000, metavar="N", help="users (default: 20000, some 250,000 launches)"
    )
    parser.add_argument("--days", type=int, default=14, metavar="N", help="days (default: 14)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed (default: 1)")
    parser.add_argument("--null", action="store_true", help="without any difference")


def run(options: argparse.Namespace, progress: Progress) -> Outcome:
    """Writes the file."""
    if not (1 <= options.users <= 50_000_000 and 1 <= options.days <= 3650 and options.seed >= 0):
        raise wrong_usage("cannot generate", "", "a number is out of range", "use positive numbers")
    truth = generator.Truth.null() if options.null else generator.Truth()
    progress("generating")
    made = generator.field_data(options.users, options.seed, options.days, truth)
    generator.write(made, options.output)
    result = GenerateResult(
        file=str(options.output),
        rows=made.num_rows,
        users=options.users,
        seed=options.seed,
        slow_slice=truth.where if truth.slowdown != 1 else {},
        slowdown=truth.slowdown,
    )
    return Outcome(result, shown)


def shown(result: GenerateResult) -> str:
    """For a terminal."""
    where = ", ".join(f"{column} = {value}" for column, value in result.slow_slice.items())
    text = f"{result.rows:,} launches of {result.users:,} users in {result.file}"
    return f"{text}; slow slice: {where}" if where else text


GENERATE = Command(
    "generate", "field data with a known slow slice, to try the others on", arguments, run, GenerateResult
)
