"""Programs with a known answer: what `cases/NAME/truth.toml` declares of them, and how they are built and started.

A case without a `make` consists of its files as they are. truth.toml: `language`; `program` (what `make` builds) or `command` (words in front of
the arguments; `{place}` is where the case was built); `may` of all variants; `kind`: `memory` where it does not say otherwise, which `cases`
records and holds against the counts below; the others are seen by a diagnosis (`diagnosed-cases`). And tables `variants`:

    arguments    of the program
    prepare      a command that makes it what it is, once, before it is launched
    user         who launches it, where that matters
    finding      that must be there, and in a diagnosis before all others; without it there must be none
    also         other findings that are true of it too, and must be there; a variant of its own says more of them
    may          other findings that may be true of it too, whatever they cost
    function     part of the name of the function that it must name
    artifact     part of the path that it must name
    cost_ms      what it costs, to a fifth
    twin         arguments with which it does the same work without what is found

Of memory, as one recording counts them, to 1 %, each a number or the name of one that the program prints:

    operations   how many
    spans        the same for findings that count those
    pages        how many faults in them
    unused       how many of these brought pages that were never used
    huge_pages   how many huge pages khugepaged made for the program
    cost         the name of a number of ms that the program prints: what khugepaged paid, to a fifth
"""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MEMORY = "memory"
COST_TOLERANCE = 0.2


@dataclass(frozen=True)
class CaseTruth:
    """A case as it is declared."""

    path: Path
    language: str
    kind: str
    command: list[str]
    may: list[str]
    variants: list[dict[str, Any]]

    @property
    def name(self) -> str:
        """Of its directory."""
        return self.path.name

    def build(self, place: Path) -> None:
        """Builds it into a directory; raises where that fails."""
        make = self.path / "make"
        if make.exists():
            subprocess.run([make, place], check=True, stdout=subprocess.DEVNULL)
            return
        for file in self.path.iterdir():
            if file.name != "truth.toml" and file.is_file():
                shutil.copy(file, place)

    def words(self, variant: dict[str, Any], place: Path) -> list[str]:
        """The command line of a variant of what was built there."""
        return [_placed(word, place) for word in [*self.command, *variant["arguments"]]]

    def prepare(self, variant: dict[str, Any], place: Path) -> None:
        """Makes what was built what the variant says."""
        if words := [_placed(word, place) for word in variant.get("prepare", [])]:
            subprocess.run(words, check=True)


def _placed(word: str, place: Path) -> str:
    return word.replace("{place}", str(place))


def case_truth(path: Path) -> CaseTruth:
    """The case in a directory."""
    truth = tomllib.loads((path / "truth.toml").read_text(encoding="utf-8"))
    command = truth["command"] if "command" in truth else [f"{{place}}/{truth['program']}"]
    return CaseTruth(path, truth["language"], truth.get("kind", MEMORY), command, truth.get("may", []), truth["variants"])


def case_truths() -> list[CaseTruth]:
    """Every case that declares its truth, by name."""
    return [case_truth(path.parent) for path in sorted((ROOT / "cases").glob("*/truth.toml"))]
