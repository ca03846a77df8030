"""What a command is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from ..progress import Progress


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command came to."""

    # What `--json` prints.
    result: msgspec.Struct
    # What a terminal shows.
    text: str
    # Parts of an HTML page.
    parts: list[str]
    code: int = 0


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its name, its arguments, what it does and what it prints."""

    name: str
    about: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Progress], Outcome]
    result: type[msgspec.Struct]


def store_argument(parser: argparse.ArgumentParser) -> None:
    """What all queries have."""
    parser.add_argument("store", metavar="STORE", help="directory that `ingest` made")
    parser.add_argument("--html", metavar="FILE", help="also write a page that stands alone")
    parser.add_argument("--metric", metavar="NAME", help="metric (default: the only one, or time_to_ready)")
