"""Slice finding on RobustSpot's labelled cases; run by bench/accept/fleet-labelled-slices.

RobustSpot (Sun et al., IEEE Trans. Services Computing 2023, doi 10.1109/tsc.2022.3155500) published 135 cases of a live
video service: viewers and stalled viewers a minute by CDN, bit rate, P2P, device and provider, the minute in which too
many stalled, and the conditions that its engineers found to be the cause. Stalled viewers of all viewers are a ratio.

A viewer in a minute is a launch here, a stalled one lies above the threshold; the minute of the case is compared with
the four before it, which RobustSpot takes for its forecast too. The set does not say who the viewers are: each is a
user of its own, put into one of the 64 groups by chance, with a seed. The cube of these counts goes through the search
that `slowpath fleet slices --max-depth 3` uses, with the product's own constants: nothing is chosen by the set.

Two causes are equal if they name the same columns with the same values; nothing is given for a part. The same rule
judges the results that RobustSpot's authors published with the set. Prints Markdown; exit code 3 where there is no set.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from slowpath_fleet.identity import GROUPS
from slowpath_fleet.slices import listing
from slowpath_fleet.slices.cube import Cube, encode, stacked, totals
from slowpath_fleet.slices.search import confirmed, search

SOURCE = "https://github.com/robustspotproject/RobustSpot"
COMMIT = "1ca0a102d71b1a9505ec0240e40a8ad463302ce0"
# SHA-256 over the names and bytes of the files that are read, so that any copy of the set will do.
DIGEST = "b52116c5a9a9c203b07c8ac8491ba2a8399e47c0461e0d5116dcd1c8424844a4"
LABELS, RESULTS = "config/anomaly.yaml", "result/result.csv"
# What `slowpath fleet slices` is asked for in its documentation.
DEPTH, FDR = 3, 0.05
# Minutes before the case that are the baseline, of 60 s each.
BEFORE, MINUTE = 4, 60
COUNTS = ("min", "value", "cnt")

# Column -> value; a set of causes explains a case.
Cause = frozenset[tuple[str, str]]
Causes = frozenset[Cause]


class UnavailableError(Exception):
    """Why there is no data, and what helps."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"unavailable: {reason}; {remedy}")


@dataclass(frozen=True)
class Case:
    """A labelled minute."""

    name: str
    time: int
    causes: Causes


@dataclass(frozen=True)
class Found:
    """Slices of a case as they are listed, best first."""

    slices: list[Cause]
    confirmed: list[Cause]
    # Viewers of the minute, and the shares that stalled before and in it.
    viewers: int
    before: float
    during: float


def text(value: Any) -> str:
    """A value in one spelling: 500, 500.0 and '500' are one."""
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return str(value)


def cause(items: Iterable[tuple[Any, Any]]) -> Cause:
    """Of columns and values."""
    return frozenset((str(column), text(value)) for column, value in items)


def checkout(given: Path | None) -> Path:
    """The set: the directory that is given, or the commit from GitHub."""
    if given is not None:
        if not (given / LABELS).is_file():
            raise UnavailableError(f"{given} has no {LABELS}", f"give a checkout of {SOURCE}")
        return given
    folder = Path("target/fleet-labelled")
    if not (folder / LABELS).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        for words in (["init", "--quiet"], ["fetch", "--quiet", "--depth=1", SOURCE, COMMIT], ["checkout", COMMIT]):
            done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["git failed"])[-1]
                raise UnavailableError(reason, f"fetch {COMMIT[:12]} of {SOURCE} elsewhere and name it with --data")
    return folder


def labels(folder: Path) -> list[Case]:
    """All cases. The file is YAML of three plain lines a case, whose third is a literal of Python."""
    cases = []
    entry: dict[str, str] = {}
    for line in (folder / LABELS).read_text(encoding="utf-8").splitlines():
        key, _, value = line.removeprefix("- ").strip().partition(": ")
        entry[key] = value.strip()
        if key == "cause":
            found = ast.literal_eval(entry["cause"])
            causes = found if isinstance(found, list) else [found]
            name, at = entry["data"], int(entry["timestamp"])
            cases.append(Case(name, at, frozenset(cause(one.items()) for one in causes)))
            entry = {}
    return cases


def digest(folder: Path, cases: list[Case]) -> str:
    """Of everything that is read."""
    found = hashlib.sha256()
    for name in [LABELS, RESULTS, *sorted(f"data/{one.name}.csv" for one in cases)]:
        found.update(name.encode() + b"\0" + (folder / name).read_bytes())
    return found.hexdigest()


def cube_of(folder: Path, case: Case, seed: int) -> Cube:
    """Viewers by everything, put into groups by chance."""
    with (folder / "data" / f"{case.name}.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if 0 <= case.time - int(row["min"]) <= BEFORE * MINUTE]
    columns = [name for name in rows[0] if name not in COUNTS]
    random = np.random.default_rng(seed)
    viewers = np.array([int(float(row["cnt"])) for row in rows])
    stalled = np.minimum(viewers, [int(float(row["value"])) for row in rows])
    even = np.full(GROUPS, 1 / GROUPS)
    above = random.multinomial(stalled, even).astype(float).ravel()
    launches = random.multinomial(viewers - stalled, even).astype(float).ravel() + above
    side = np.array([int(int(row["min"]) == case.time) for row in rows])
    codes, names = [], []
    for column in columns:
        values = np.repeat([text(row[column]) for row in rows], GROUPS).tolist()
        numbers, kept = encode(values, launches)
        codes.append(numbers)
        names.append(kept)
    groups = np.tile(np.arange(GROUPS), len(rows))
    return Cube(columns, names, np.stack(codes, axis=1), np.repeat(side, GROUPS), groups, launches, above)


def found_in(cube: Cube) -> Found:
    """What `slices` lists."""
    total = totals(cube)
    picked = search(cube, DEPTH, FDR).picked
    found = listing.Found(
        wheres=[listing.named(cube, one.where) for one in picked],
        counts=stacked([one.counts for one in picked]) if picked else None,
        q=[one.q for one in picked],
        confirmed=confirmed(picked, total, FDR),
        users=[None] * len(picked),
    )
    slices = listing.listed(found, total, None, None)
    launches, above = total.launches.sum(2)[0], total.above.sum(2)[0]
    before, during = above / np.maximum(launches, 1)
    return Found(
        [cause(one.where.items()) for one in slices],
        [cause(one.where.items()) for one in slices if one.confirmed],
        int(launches[1]),
        float(before),
        float(during),
    )


def published(folder: Path) -> dict[str, list[Causes]]:
    """Case -> what RobustSpot's authors published for it, best first; an entry is a set of causes."""
    with (folder / RESULTS).open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {
        name: [frozenset(cause(one) for one in entry) for entry in ast.literal_eval(entries)] for name, entries in rows
    }


@dataclass
class Score:
    """Counts of causes over all cases."""

    hits: int = 0
    wrong: int = 0
    missed: int = 0

    def add(self, said: Causes, true: Causes) -> None:
        """One case."""
        self.hits += len(said & true)
        self.wrong += len(said - true)
        self.missed += len(true - said)

    def row(self, name: str) -> str:
        """Of a table."""
        precision = self.hits / max(1, self.hits + self.wrong)
        recall = self.hits / max(1, self.hits + self.missed)
        f1 = 2 * self.hits / max(1, 2 * self.hits + self.wrong + self.missed)
        return f"| {name} | {self.hits} | {self.wrong} | {self.missed} | {precision:.3f} | {recall:.3f} | {f1:.3f} |"


def scored(cases: list[Case], said: Callable[[Case], Causes]) -> Score:
    """Of all cases."""
    score = Score()
    for case in cases:
        score.add(said(case), case.causes)
    return score


def shown(causes: Iterable[Cause]) -> str:
    """As text."""
    return "; ".join(sorted(" & ".join(f"{column}={value}" for column, value in sorted(one)) for one in causes)) or "-"


def relation(slices: list[Cause], causes: Causes) -> str:
    """How the first slice differs from the label."""
    if not slices:
        return "nothing is found"
    first = slices[0]
    if first in causes:
        return "equal"
    if any(first < one for one in causes):
        return "a part of the label's conditions"
    if any(first > one for one in causes):
        return "the label and more conditions"
    if any(first & one for one in causes):
        return "some conditions in common"
    return "no condition in common"


def report(cases: list[Case], results: dict[str, Found], others: dict[str, list[Causes]], whole: bool) -> None:
    """Prints Markdown."""
    ranked = {name: [frozenset([one]) for one in found.slices] for name, found in results.items()}
    lists: dict[str, Callable[[Case], Causes]] = {
        "slowpath-fleet, the first slice": lambda case: frozenset(results[case.name].slices[:1]),
        "slowpath-fleet, all confirmed slices": lambda case: frozenset(results[case.name].confirmed),
        "RobustSpot, its first entry": lambda case: others[case.name][0],
    }
    print("| causes that are named | right | wrong | missed | precision | recall | F1 |")
    print("|---|---|---|---|---|---|---|")
    for name, said in lists.items():
        print(scored(cases, said).row(name))
    print("\n| the label is the n-th entry or an earlier one, share of cases | n = 1 | 2 | 3 | 5 |")
    print("|---|---|---|---|---|")
    for name, entries in (("slowpath-fleet", ranked), ("RobustSpot", others)):
        within = [sum(case.causes in entries[case.name][:n] for case in cases) / len(cases) for n in (1, 2, 3, 5)]
        print(f"| {name} | {' | '.join(f'{share:.1%}' for share in within)} |")
    print("\n| the first slice of slowpath-fleet against the label | cases |")
    print("|---|---|")
    kinds = [relation(results[case.name].slices, case.causes) for case in cases]
    for kind in sorted(set(kinds), key=lambda kind: -kinds.count(kind)):
        print(f"| {kind} | {kinds.count(kind)} |")
    if whole:
        print("\n| case | viewers | stalled before | stalled | label | first slices | confirmed | RobustSpot's first |")
        print("|---|---|---|---|---|---|---|---|")
        for case in cases:
            one = results[case.name]
            first = ", then ".join(shown([each]) for each in one.slices[:3]) or "-"
            stalled = f"{one.before:.2%} | {one.during:.2%}"
            theirs = shown(others[case.name][0])
            print(
                f"| {case.name} | {one.viewers:,} | {stalled} | {shown(case.causes)} | {first} | {len(one.confirmed)} "
                f"| {theirs} |"
            )


def main() -> int:
    """Runs all cases."""
    words = argparse.ArgumentParser(description="slice finding on RobustSpot's labelled cases")
    words.add_argument("--data", type=Path, help=f"a checkout of {SOURCE} (default: fetched at commit {COMMIT[:12]})")
    words.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th case")
    words.add_argument("--cases", action="store_true", help="print all cases too")
    options = words.parse_args()
    try:
        folder = checkout(options.data)
        everything = labels(folder)
        same = digest(folder, everything) == DIGEST
    except (UnavailableError, OSError) as error:
        print(
            error if isinstance(error, UnavailableError) else f"unavailable: {error}; give a whole checkout",
            file=sys.stderr,
        )
        return 3
    cases = everything[:: options.every]
    results: dict[str, Found] = {}
    began, cpu = time.perf_counter(), time.process_time()
    for number, case in enumerate(cases):
        results[case.name] = found_in(cube_of(folder, case, number))
        left = (time.perf_counter() - began) / (number + 1) * (len(cases) - number - 1)
        print(f"case {number + 1} of {len(cases)}, {left:.0f} s left", file=sys.stderr)
    spent = time.process_time() - cpu
    state = f"at commit {COMMIT[:12]}" if same else f"in other bytes than commit {COMMIT[:12]} has"
    print(f"{len(cases)} of {len(everything)} cases of {SOURCE}, {state}; {spent / len(cases):.2f} s of CPU a case.\n")
    report(cases, results, published(folder), options.cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
