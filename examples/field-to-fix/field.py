"""Field data of this example: launches of many users, each of which took as long as a launch that was measured here.

    field.py OUTPUT SEED MEASURE CONDITION=LAUNCH.json...

Conditions: `whole` (artifact readable), `unreadable`, and, for an experiment, `fixed`. Each file is what
`slowpath launch --json` printed; MEASURE is what is taken of it: `wall`, or `cpu` where others load the machine. In the
slice device M2, os 9, start isolated of the population `ours` a launch takes a measured time of `unreadable`,
everywhere else one of `whole`. With `fixed`, half of the users of `ours` are in the arm `fix`, where the slice takes
times of `fixed`. A user's machine is faster or slower than this one by a factor of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

USERS, PER_USER, DAYS = 6000, 12.0, 14


def measured(path: str, measure: str) -> np.ndarray:
    """Times of all launches of a result, in ms."""
    document = json.loads(Path(path).read_text())
    unit = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}[document["units"][measure]]
    launches = [one for arm in document["arms"] for one in arm["launches"] if one is not None]
    return np.array([one["measures"][measure] * unit for one in launches])


def main(output: str, seed: int, pools: dict[str, np.ndarray]) -> None:
    """Writes a Parquet file."""
    random = np.random.default_rng(seed)
    ours, treated = random.random(USERS) < 0.5, random.random(USERS) < 0.5
    device, system = (random.choice(4, USERS, p=p) for p in ((0.3, 0.35, 0.2, 0.15), (0.2, 0.4, 0.25, 0.15)))
    speed = np.exp(random.normal(0, 0.25, USERS))
    owner = np.repeat(np.arange(USERS), 1 + random.poisson(random.gamma(0.8, PER_USER / 0.8, USERS)))
    n = len(owner)
    start = random.choice(3, n, p=[0.4, 0.3, 0.3])
    day, second = random.integers(0, DAYS, n), random.integers(0, 86_400, n)
    slow = ours[owner] & (device[owner] == 1) & (system[owner] == 1) & (start == 0)
    trial = ours & ("fixed" in pools)
    fixed = slow & (trial & treated)[owner]
    value = random.choice(pools["whole"], n)
    value[slow] = random.choice(pools["unreadable"], int(slow.sum()))
    if fixed.any():
        value[fixed] = random.choice(pools["fixed"], int(fixed.sum()))
    arms = np.where(trial, np.where(treated, "fix", "control"), None)
    pq.write_table(
        pa.table(
            {
                "time": np.datetime64("2026-03-01", "s") + day * 86_400 + second,
                "user": [f"u{one}" for one in owner],
                "population": np.where(ours, "ours", "rival")[owner],
                "experiment": pa.array(np.where(trial, "readable-artifact", None)[owner], pa.string()),
                "arm": pa.array(arms[owner], pa.string()),
                "device": np.array(["M1", "M2", "L1", "T1"])[device][owner],
                "os": np.array(["8", "9", "10", "11"])[system][owner],
                "start": np.array(["isolated", "main", "restore"])[start],
                "metric": ["time_to_ready"] * n,
                "value": value * speed[owner],
            }
        ),
        output,
    )


if __name__ == "__main__":
    conditions = dict(one.split("=") for one in sys.argv[4:])
    main(sys.argv[1], int(sys.argv[2]), {name: measured(path, sys.argv[3]) for name, path in conditions.items()})
