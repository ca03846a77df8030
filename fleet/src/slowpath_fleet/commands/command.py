"""What a command is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from .. import escaped
from ..backends import BACKENDS, DEFAULT
from ..progress import Progress
from ..text_table import printable


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command came to.

    What a terminal and a page show is made from the result with all its text escaped (`escaped.struct`), never from the
    result itself: so nothing from data can move a cursor, break a line or turn the direction of text.
    """

    # What `--json` prints.
    result: msgspec.Struct
    # Text for a terminal, from an escaped result.
    shown: Callable[[Any], str]
    # Parts of an HTML page, from an escaped result.
    page_parts: Callable[[Any], list[str]] | None = None
    code: int = 0

    @property
    def text(self) -> str:
        """What a terminal shows. Lines are the command's own; whatever else cannot be printed is escaped once more."""
        return "\n".join(printable(line) for line in self.shown(escaped.struct(self.result)).split("\n"))

    @property
    def parts(self) -> list[str]:
        """Parts of an HTML page."""
        return self.page_parts(escaped.struct(self.result)) if self.page_parts is not None else []

    @property
    def json(self) -> str:
        """What `--json` prints."""
        return escaped.json(self.result)


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
    engines = ", ".join(one.example for one in BACKENDS)
    parser.add_argument("--backend", default=DEFAULT, metavar="ENGINE", help=f"what computes: {engines} ({DEFAULT})")
