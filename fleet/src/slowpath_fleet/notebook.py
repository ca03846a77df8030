"""The same commands for notebooks and scripts: results as objects that show themselves.

from slowpath_fleet import Fleet
fleet = Fleet("STORE")
fleet.compare(by="population")          # a table and a picture in a notebook, text elsewhere
fleet.compare().result.differences      # the typed result, as `--json` prints it
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cli import run_words
from .commands.command import Outcome
from .pages.page import STYLE, page


@dataclass(frozen=True, slots=True)
class View:
    """A result that shows itself."""

    outcome: Outcome
    title: str

    @property
    def result(self) -> Any:
        """What `--json` prints, as its type."""
        return self.outcome.result

    def __repr__(self) -> str:
        """As in a terminal."""
        return self.outcome.text

    def _repr_html_(self) -> str:
        style = STYLE.replace("body", ".slowpath-fleet")
        return f"<style>{style}</style><div class=slowpath-fleet>{''.join(self.outcome.parts)}</div>"

    def page(self) -> str:
        """A page that stands alone."""
        return page(self.title, self.outcome.parts)

    def json(self) -> str:
        """What `--json` prints."""
        return self.outcome.json


class Fleet:
    """A store, and the commands on it. Keywords are the options of the commands, `_` for `-`; `None` leaves one out."""

    def __init__(self, store: str | Path) -> None:
        self.store = str(store)

    def compare(self, **options: str | float | bool | None) -> View:
        """`slowpath fleet compare`."""
        return self._run("compare", options)

    def slices(self, **options: str | float | bool | None) -> View:
        """`slowpath fleet slices`."""
        return self._run("slices", options)

    def experiment(self, **options: str | float | bool | None) -> View:
        """`slowpath fleet experiment`."""
        return self._run("experiment", options)

    def watch(self, **options: str | float | bool | None) -> View:
        """`slowpath fleet watch`."""
        return self._run("watch", options)

    def _run(self, command: str, options: dict[str, str | float | bool | None]) -> View:
        words = [command, self.store]
        for name, value in options.items():
            if value is True:
                words.append(f"--{name.replace('_', '-')}")
            elif value not in (None, False):
                words.append(f"--{name.replace('_', '-')}={value}")
        return View(run_words(words), f"slowpath fleet {command} {self.store}")
