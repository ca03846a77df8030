"""How often slowpath-fleet is wrong where there is nothing to find; run by bench/accept/fleet-calibration.

Whole pipeline on null data of the generator (no difference between populations and arms), one store a seed: slices
at depth 2, which must list something in at most 5 % of the stores, and watch with the same rate, which must list a
change in at most 5 %; intervals of differences (compare, slices, experiment), which must cover zero in 93-97 %, and of
levels, which must cover the quantile or mean of a far larger population; and what intervals that ignore repeated users
would have covered, which must be less than 93 %. Prints Markdown; exit code 1 where one of these fails by more than two
standard errors.

`--keep FILE` appends what each seed gave, a line of JSON each; seeds that are in it are not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from slowpath_fleet import Fleet, generator
from slowpath_fleet.clustered import mover, naive_quantile
from slowpath_fleet.distributions import distributions
from slowpath_fleet.engine import Engine
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Store

METRICS = """
[[metric]]
name = "time_to_ready"
statistics = ["mean", "p50", "p95", "count_per_user"]
[retention]
days = [1, 7]
"""
CUPED = '[[metric]]\nname = "time_to_ready"\nstatistics = ["mean"]\n[cuped]\nbefore = "2026-03-08"\n'
# Users whose launches stand for all that there could be.
POPULATION, POPULATION_SEED = 400_000, 7_000_000
PROMISED = 0.95
# Kinds of a line: a false discovery, an interval, an interval that ignores repeated users.
FALSE, COVERS, NAIVE = "false", "covers", "naive"


def population() -> dict[str, float]:
    """Quantiles and means of the null data themselves: of all launches, and of those of people."""
    table = generator.field_data(POPULATION, POPULATION_SEED, truth=generator.Truth.null())
    values = table["value"].to_numpy()
    people = values[table["robot"].to_numpy(zero_copy_only=False) == "false"]
    return {
        "compare p50": float(np.quantile(values, 0.5)),
        "compare p95": float(np.quantile(values, 0.95)),
        "experiment mean": float(people.mean()),
        "experiment p50": float(np.quantile(people, 0.5)),
        "experiment p95": float(np.quantile(people, 0.95)),
    }


def covers(one: Any, truth: float = 0.0) -> bool:
    """Whether a quantity's interval does; one that cannot be given does not."""
    return one.low is not None and bool(one.low <= truth <= one.high)


def judged(place: Path, seed: int, users: int, truth: dict[str, float]) -> dict[str, dict[str, bool]]:
    """What one store of null data gave."""
    generator.write(generator.field_data(users, seed, truth=generator.Truth.null()), place / "a.parquet")
    (place / "metrics.toml").write_text(METRICS)
    (place / "cuped.toml").write_text(CUPED)
    store = Store.create(place / "s")
    ingest(store, [place / "a.parquet"], IngestOptions(), lambda line: None)
    fleet = Fleet(place / "s")
    slices = fleet.slices(baseline="rival", max_depth=2).result
    false = {
        "slices lists a slice": bool(slices.slices),
        "slices confirms one": any(one.confirmed for one in slices.slices),
        "watch --fdr 0.05 lists a change": bool(fleet.watch(fdr=0.05, min_effect=0).result.changes),
    }
    found = {"slices, gap": covers(slices.gap), "slices, excess": covers(slices.excess)}
    compared = fleet.compare(by="population", quantiles="50,75,95,99").result
    for one in compared.differences:
        found[f"compare p{one.quantile}"] = covers(one.difference)
        found[f"compare p{one.quantile}, relative"] = covers(one.relative)
    for quantile in ("50", "95"):
        for row in compared.rows:
            name = f"compare p{quantile} of {row.value} itself"
            found[name] = covers(row.quantiles[quantile], truth[f"compare p{quantile}"])
    for one in fleet.experiment(metrics=str(place / "metrics.toml")).result.metrics:
        name = one.statistic if one.metric == "time_to_ready" else f"{one.metric} {one.statistic}"
        found[f"experiment {name}"] = covers(one.difference)
        found[f"experiment {name}, relative"] = covers(one.relative)
        if f"experiment {one.statistic}" in truth:
            level = one.arms[one.control]
            found[f"experiment {name} of the control itself"] = covers(level, truth[f"experiment {one.statistic}"])
    (with_pre,) = fleet.experiment(metrics=str(place / "cuped.toml")).result.metrics
    found["experiment mean with a pre-period"] = covers(with_pre.difference)
    engine = Engine(store)
    sides = distributions(engine, "population", "time_to_ready")
    naive = {}
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        a, b = (naive_quantile(sides[value].histogram, share) for value in ("rival", "ours"))
        naive[name] = covers(mover(a, b, 0.0))
    engine.close()
    return {FALSE: false, COVERS: found, NAIVE: naive}


def kept(file: Path | None, users: int) -> dict[int, dict[str, dict[str, bool]]]:
    """What seeds gave that were run before."""
    if file is None or not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return {line["seed"]: line["gave"] for line in lines if line["users"] == users}


def counted(given: Iterable[dict[str, dict[str, bool]]], kind: str) -> Counter[str]:
    """In how many stores each was so."""
    count: Counter[str] = Counter()
    for one in given:
        count.update({name: int(value) for name, value in one[kind].items()})
    return count


def report(given: list[dict[str, dict[str, bool]]]) -> bool:
    """Prints Markdown; whether all promises are kept, but for two standard errors."""
    n = len(given)
    slack = 2 * math.sqrt(PROMISED * (1 - PROMISED) / n)
    fine = True
    promises = {
        FALSE: ("at most 5 %", lambda share: share <= 0.05 + slack),
        COVERS: ("95 %, from 93 to 97 %", lambda share: 0.93 - slack <= share <= 0.97 + slack),
        NAIVE: ("must fail: less than 93 %", lambda share: share < 0.93),
    }
    titles = {FALSE: "{}", COVERS: "the interval of {} covers", NAIVE: "an interval of {} without users covers"}
    print(f"| of {n} stores | how many | share | promised | within 93-97 % | kept, but for {slack:.1%} |")
    print("|---|---|---|---|---|---|")
    for kind, (promise, holds) in promises.items():
        for name, count in counted(given, kind).items():
            share = count / n
            fine &= holds(share)
            inside = "-" if kind == FALSE else "yes" if 0.93 <= share <= 0.97 else "no"
            said = f"{promise} | {inside} | {'yes' if holds(share) else '**no**'}"
            print(f"| {titles[kind].format(name)} | {count} | {share:.1%} | {said} |")
    print(f"\nTwo standard errors of {n} stores at 95 % are {slack:.1%}.")
    return fine


def main() -> int:
    """Runs it."""
    words = argparse.ArgumentParser(description="how often slowpath-fleet is wrong where there is nothing to find")
    words.add_argument("--seeds", type=int, default=200, help="how many stores")
    words.add_argument("--first", type=int, default=1000, help="seed of the first store")
    words.add_argument("--users", type=int, default=3000, help="users of a store")
    words.add_argument("--keep", type=Path, help="file with what seeds gave; those in it are not run again")
    options = words.parse_args()
    given = kept(options.keep, options.users)
    before = len(given)
    seeds = range(options.first, options.first + options.seeds)
    left = [seed for seed in seeds if seed not in given]
    truth = population() if left else {}
    cpu = time.process_time()
    for number, seed in enumerate(left):
        with tempfile.TemporaryDirectory() as folder:
            given[seed] = judged(Path(folder), seed, options.users, truth)
        if options.keep is not None:
            with options.keep.open("a") as file:
                file.write(json.dumps({"seed": seed, "users": options.users, "gave": given[seed]}) + "\n")
        spent = (time.process_time() - cpu) / (number + 1)
        print(f"seed {seed}, {number + 1} of {len(left)}, {spent:.1f} s of CPU each", file=sys.stderr)
    print(f"Seeds {seeds[0]} to {seeds[-1]}, {options.users} users each; {len(left)} run now, {before} before.\n")
    return 0 if report([given[seed] for seed in seeds]) else 1


if __name__ == "__main__":
    sys.exit(main())
