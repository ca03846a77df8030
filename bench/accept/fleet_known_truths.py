"""Whether slowpath-fleet finds what the generator hid, on many seeds; run by bench/accept/fleet-known-truths.

`slices`: slow slices of one, two and three conditions, made 1.5 and 3 times slower, one store a slice and seed. What
comes first is compared with what was hidden. The rest: story 1's shape, one store a seed. `slices` must name its slice
first and confirm it, `compare` and `experiment` must cover the true differences (those of a far larger population), and
the version that is faster on every network and slower as a whole must be flagged. Prints Markdown; exit code 1 where
the story's slice is not first in 90 % of the stores, or an interval covers the truth in less than 93 % but for two
standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
from fleet_labelled_slices import cause, relation
from slowpath_fleet import Fleet, generator
from slowpath_fleet.generator import Truth
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Store

HIDDEN: tuple[dict[str, str], ...] = (
    {"device": "M3"},
    {"os": "10"},
    {"start": "cold"},
    {"device": "M2", "start": "isolated"},
    {"os": "9", "start": "warm"},
    {"device": "M1", "os": "10"},
    {"device": "M2", "os": "9", "start": "isolated"},
    {"device": "L1", "os": "9", "start": "cold"},
)
SLOWDOWNS = (1.5, 3.0)
KINDS = (
    "equal",
    "a part of the label's conditions",
    "the label and more conditions",
    "some conditions in common",
    "no condition in common",
    "nothing is found",
)
POPULATION, POPULATION_SEED = 400_000, 7_000_001


def made(place: Path, table: pa.Table) -> Fleet:
    """A store of it."""
    generator.write(table, place / "a.parquet")
    ingest(Store.create(place / "s"), [place / "a.parquet"], IngestOptions(), lambda line: None)
    return Fleet(place / "s")


def first_slices(hidden: dict[str, str], slowdown: float, seeds: range, users: int) -> Counter[str]:
    """How the first slice differs from the one that was hidden; there is nothing else to find."""
    kinds: Counter[str] = Counter()
    for seed in seeds:
        truth = Truth(hidden, slowdown, slow_network=(0.12, 0.12), simpson=False)
        with tempfile.TemporaryDirectory() as folder:
            fleet = made(Path(folder), generator.field_data(users, seed, truth=truth))
            slices = fleet.slices(baseline="rival", max_depth=3).result.slices
        found = [cause(one.where.items()) for one in slices]
        kinds[relation(found, frozenset([cause(hidden.items())]))] += 1
        print(f"{hidden} {slowdown} seed {seed}: {dict(found[0]) if found else '-'}", file=sys.stderr)
    return kinds


def true_differences() -> dict[str, float]:
    """Of the story's data, from far more users."""
    table = generator.field_data(POPULATION, POPULATION_SEED)
    value, ours, arm, robot = (
        table[name].to_numpy(zero_copy_only=False) for name in ("value", "population", "arm", "robot")
    )
    mine = ours == "ours"
    found = {}
    for name in ("50", "95"):
        a, b = (np.quantile(value[side], float(name) / 100) for side in (~mine, mine))
        found[f"compare p{name}"] = float(b - a)
    control, fix = (value[(arm == one) & (robot == "false")] for one in ("control", "fix"))
    found["experiment mean"] = float(fix.mean() - control.mean())
    for name in ("50", "95"):
        share = float(name) / 100
        found[f"experiment p{name}"] = float(np.quantile(fix, share) - np.quantile(control, share))
    found["experiment count_per_user"] = 0.0
    return found


def story(seeds: range, users: int) -> Counter[str]:
    """In how many stores of the story's shape each was as it should be."""
    truth, hidden = true_differences(), cause(Truth().where.items())
    count: Counter[str] = Counter()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            fleet = made(Path(folder), generator.field_data(users, seed))
            slices = fleet.slices(baseline="rival", max_depth=3).result.slices
            by_version = fleet.slices(by="version", baseline="1", quantile="75", max_depth=1).result
            differences = fleet.compare(by="population", quantiles="50,95").result.differences
            metrics = fleet.experiment().result.metrics
        # Ours less rival, or the other way round: the population with more launches is the first.
        signs = [1 if one.b == "ours" else -1 for one in differences]
        intervals = [
            (f"compare p{one.quantile}", one.difference, sign) for one, sign in zip(differences, signs, strict=True)
        ]
        intervals += [(f"experiment {one.statistic}", one.difference, 1) for one in metrics]
        count["the slice is first"] += bool(slices) and cause(slices[0].where.items()) == hidden
        count["it is first and confirmed"] += (
            bool(slices) and cause(slices[0].where.items()) == hidden and slices[0].confirmed
        )
        count["the reversal by network is flagged, and no other"] += [one.column for one in by_version.reversals] == [
            "network"
        ]
        for name, one, sign in intervals:
            covered = one.low is not None and one.low <= sign * truth[name] <= one.high
            count[f"the interval of {name} covers the truth"] += bool(covered)
        print(f"story, seed {seed}: {dict(count)}", file=sys.stderr)
    return count


def main() -> int:
    """Runs it."""
    words = argparse.ArgumentParser(description="whether slowpath-fleet finds what the generator hid")
    words.add_argument("--seeds", type=int, default=10, help="stores of every slice")
    words.add_argument("--story", type=int, default=40, help="stores of story 1's shape")
    words.add_argument("--first", type=int, default=500_000, help="the first seed")
    words.add_argument("--users", type=int, default=6000, help="users of a store")
    options = words.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    every = Counter[str]()
    print(f"Seeds from {options.first}, {options.users} users each. What was hidden, and the first slice:\n")
    print(f"| hidden | times slower | {' | '.join(KINDS)} |")
    print("|---|---" + "|---" * len(KINDS) + "|")
    for slowdown in SLOWDOWNS:
        for hidden in HIDDEN:
            kinds = first_slices(hidden, slowdown, seeds, options.users)
            every += kinds
            shown = ", ".join(f"{column} = {value}" for column, value in hidden.items())
            print(f"| {shown} | {slowdown:g} | {' | '.join(str(kinds[kind]) for kind in KINDS)} |", flush=True)
    print(f"| all | | {' | '.join(str(every[kind]) for kind in KINDS)} |\n")
    n = options.story
    if not n:
        return 0
    count = story(range(options.first + 10_000, options.first + 10_000 + n), options.users)
    print(f"| of {n} stores of story 1's shape | how many | share |")
    print("|---|---|---|")
    for name, number in count.items():
        print(f"| {name} | {number} | {number / n:.1%} |")
    slack = 2 * math.sqrt(0.95 * 0.05 / n)
    fine = all(number / n >= 0.93 - slack for name, number in count.items() if "covers" in name)
    return 0 if fine and count["the slice is first"] >= 0.9 * n else 1


if __name__ == "__main__":
    sys.exit(main())
