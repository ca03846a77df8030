"""The command line: one object on standard output with `--json`, everything else on standard error."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import duckdb
import pyarrow as pa

from . import escaped, progress
from .commands.command import Outcome
from .commands.registry import COMMANDS
from .errors import CANNOT, INTERRUPTED, FleetError, cannot
from .pages.page import page
from .regular_file import replacing
from .text_table import printable


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    whole = argparse.ArgumentParser(
        prog="slowpath-fleet",
        description="Analyze field data: compare launches, find the slow slice, evaluate an experiment.",
        epilog="Exit codes: 0 done, 1 a verdict failed, 2 wrong usage, 3 this machine cannot do it.",
    )
    parts = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        part = parts.add_parser(
            command.name, help=command.about, description=command.about[0].upper() + command.about[1:] + "."
        )
        command.arguments(part)
        part.add_argument("--json", action="store_true", help="print one JSON object")
        part.add_argument("--quiet", action="store_true", help="no progress")
    return whole


def run_words(words: list[str]) -> Outcome:
    """Runs a command in this process; raises `FleetError`."""
    options = parser().parse_args(words)
    command = next(one for one in COMMANDS if one.name == options.command)
    return command.run(options, progress.Progress(True))


def main(words: list[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    options = parser().parse_args(words)
    command = next(one for one in COMMANDS if one.name == options.command)
    shown = progress.Progress(options.quiet)
    # Field data are not for everybody on this machine, and nor is anything that is made of them.
    mask = os.umask(0o077)
    try:
        outcome = command.run(options, shown)
        if getattr(options, "html", None):
            with replacing(Path(options.html)) as file:
                file.write_text(page(f"slowpath fleet {command.name} {options.store}", outcome.parts))
    except (KeyboardInterrupt, duckdb.InterruptException):
        # As a shell says of a program that ctrl-C ended.
        return INTERRUPTED
    except Exception as error:
        return failed(options, understood(error, options))
    finally:
        os.umask(mask)
        shown.done()
    text = outcome.json if options.json else outcome.text
    try:
        print(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it has seen enough; nothing is to be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return outcome.code


def understood(error: Exception, options: argparse.Namespace) -> FleetError:
    """An error with what to do about it. Code 1 is a failed verdict, so nothing unforeseen may end with it."""
    if isinstance(error, FleetError):
        return error
    what, subject = f"cannot {options.command}", str(getattr(options, "store", ""))
    why = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:300]}"
    if isinstance(error, duckdb.OutOfMemoryException):
        return cannot(what, subject, why, "raise SLOWPATH_FLEET_MEMORY")
    if isinstance(error, duckdb.Error | pa.ArrowException):
        return cannot(what, subject, why, "ingest the data anew, or raise SLOWPATH_FLEET_MEMORY")
    if isinstance(error, MemoryError | OSError):
        return cannot(what, subject, why, "free space or memory and try again")
    return cannot(what, subject, why, "report it as a defect of slowpath-fleet, with the data if you can")


def failed(options: argparse.Namespace, error: FleetError) -> int:
    """Reports an error as `slowpath` does, and returns the exit code."""
    if options.json:
        kind = "machine" if error.code == CANNOT else "usage"
        shown = {"kind": kind, "message": f"{error.what}: {error.subject}", "causes": [error.why], "hint": error.remedy}
        print(escaped.json({"schema": "slowpath-error/1", "error": shown}))
    print(f"slowpath-fleet: {printable(str(error))}", file=sys.stderr)
    return error.code


if __name__ == "__main__":
    sys.exit(main())
