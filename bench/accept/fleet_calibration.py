"""How often slowpath-fleet is wrong where there is nothing to find; run by bench/accept/fleet-calibration.

Whole pipeline on null data of the generator (no difference between populations and arms), one store a seed: slices
at depth 2, which must list something in at most 5 % of the stores, and watch with the same rate, which must list a
change in at most 5 %; compare and experiment, whose intervals must cover zero in 93-97 %; and what intervals that
ignore repeated users would have covered. Prints one JSON object; exit code 1 where one of these fails by more than two
standard errors.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

from slowpath_fleet import Fleet, generator
from slowpath_fleet.clustered import mover, naive_quantile
from slowpath_fleet.distributions import distributions
from slowpath_fleet.engine import Engine
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Store


def main() -> int:
    """Runs it."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seeds", type=int, default=200)
    words.add_argument("--users", type=int, default=3000)
    options = words.parse_args()
    found = {"any_slice": 0, "confirmed_slice": 0, "any_change": 0}
    covered: dict[str, int] = {}
    naive: dict[str, int] = {}
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            generator.write(
                generator.field_data(options.users, 1000 + seed, truth=generator.Truth.null()), place / "a.parquet"
            )
            store = Store.create(place / "s")
            ingest(store, [place / "a.parquet"], IngestOptions(), lambda line: None)
            fleet = Fleet(place / "s")
            listed = fleet.slices(baseline="rival", max_depth=2).result.slices
            found["any_slice"] += bool(listed)
            found["confirmed_slice"] += any(one.confirmed for one in listed)
            found["any_change"] += bool(fleet.watch(fdr=0.05, min_effect=0).result.changes)
            for one in fleet.compare(by="population", quantiles="50,95").result.differences:
                name = f"compare p{one.quantile}"
                covered[name] = covered.get(name, 0) + (one.difference.low <= 0 <= one.difference.high)
            for one in fleet.experiment().result.metrics:
                name = f"experiment {one.statistic}"
                covered[name] = covered.get(name, 0) + (one.difference.low <= 0 <= one.difference.high)
            engine = Engine(store)
            sides = distributions(engine, "population", "time_to_ready")
            for name, share in (("p50", 0.5), ("p95", 0.95)):
                a, b = (naive_quantile(sides[value].histogram, share) for value in ("rival", "ours"))
                difference = mover(a, b, 0.0)
                naive[name] = naive.get(name, 0) + (difference.low <= 0 <= difference.high)
            engine.close()
        print(f"{seed + 1} of {options.seeds}: {found} {covered} naive {naive}", file=sys.stderr)
    n = options.seeds
    result = {
        "seeds": n,
        "false_discovery_rate": {name: count / n for name, count in found.items()},
        "coverage": {name: count / n for name, count in covered.items()},
        "naive_coverage": {name: count / n for name, count in naive.items()},
        "two_standard_errors_at_95": 2 * math.sqrt(0.95 * 0.05 / n),
    }
    print(json.dumps(result, indent=1))
    slack = result["two_standard_errors_at_95"]
    kept = max(found["any_slice"], found["any_change"]) / n <= 0.05 + slack and all(
        abs(c / n - 0.95) <= 0.02 + slack for c in covered.values()
    )
    return 0 if kept and all(c / n < 0.93 for c in naive.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
