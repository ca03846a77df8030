"""Field data with known truth: the shape of the investigation that this package exists for.

Two populations, `ours` and `rival`, alike in everything but this:

- in one slice (device M2, os 9, start isolated) `ours` is `Truth.slowdown` times slower, so that p50 stays close and
  p95 does not;
- `ours` has more launches on slow networks (a mix shift, no slowdown);
- version 2 of `ours` is faster than version 1 on every network, but is used more on slow ones (a Simpson trap).

Users have a speed of their own and launch many times; some are robots, which are fast and launch without end. Half of
`ours` takes part in an experiment whose arm `fix` removes most of the slowdown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from .regular_file import replacing

FIRST_DAY: Final = datetime(2026, 3, 1)
DEVICES: Final = ("M1", "M2", "M3", "L1", "L2", "T1")
SYSTEMS: Final = ("8", "9", "10", "11")
STARTS: Final = ("isolated", "cold", "warm")
NETWORKS: Final = ("wifi", "4g", "3g")
NAVIGATIONS: Final = ("link", "search", "restore")


@dataclass(frozen=True, slots=True)
class Truth:
    """What is hidden in the data; the default is the story's shape, `Truth.null()` has no difference at all."""

    where: dict[str, str] = field(default_factory=lambda: {"device": "M2", "os": "9", "start": "isolated"})
    slowdown: float = 5.0
    # Share of the slowdown (on the log scale) that the experiment's arm `fix` removes.
    repaired: float = 0.9
    # Share of launches on 3g in the two populations.
    slow_network: tuple[float, float] = (0.16, 0.12)
    simpson: bool = True
    robots: float = 0.01
    # Standard deviation of users' own log speed, and of launches around it.
    between: float = 0.35
    within: float = 0.40

    @staticmethod
    def null() -> Truth:
        """No difference between the populations, and none between the arms."""
        return Truth(slowdown=1.0, slow_network=(0.12, 0.12), simpson=False)


def field_data(users: int, seed: int, days: int = 14, truth: Truth | None = None, per_user: float = 12.0) -> pa.Table:
    """A table of launches in the columns that `ingest` knows; about `users * per_user` rows."""
    truth = truth or Truth()
    random = np.random.default_rng(seed)
    ours = random.random(users) < 0.5
    device = random.choice(len(DEVICES), users, p=[0.2, 0.3, 0.2, 0.12, 0.1, 0.08])
    system = random.choice(len(SYSTEMS), users, p=[0.15, 0.4, 0.3, 0.15])
    robot = random.random(users) < truth.robots
    speed = random.normal(0, truth.between, users)
    # Few users make most launches: a gamma of shape 0.8.
    launches = np.maximum(1, random.poisson(random.gamma(0.8, per_user / 0.8, users)))
    launches[robot] *= 10
    first = random.integers(0, days, users)
    in_experiment = ours & (random.random(users) < 0.5)
    fixed = random.random(users) < 0.5

    owner = np.repeat(np.arange(users), launches)
    n = len(owner)
    day = np.minimum(days - 1, first[owner] + random.integers(0, days, n) % np.maximum(1, days - first[owner]))
    second = random.integers(0, 86_400, n)
    start = random.choice(len(STARTS), n, p=[0.4, 0.3, 0.3])
    navigation = random.choice(len(NAVIGATIONS), n, p=[0.5, 0.35, 0.15])
    mine = ours[owner]
    late = random.random(n) < 0.5
    network = networks(random, mine, late, truth)

    log = np.log(600.0) + speed[owner] + random.normal(0, truth.within, n)
    log += np.array([0.0, 0.08, 0.25, 0.05, 0.15, -0.1])[device[owner]]
    log += np.array([0.1, 0.25, -0.35])[start] + np.array([0.0, 0.15, 0.45])[network]
    if truth.simpson:
        log -= np.where(mine & late, 0.04, 0.0)
    hit = slice_mask(truth, device[owner], system[owner], start) & mine
    repaired = truth.repaired * (in_experiment & fixed)[owner]
    log += np.where(hit, np.log(truth.slowdown) * (1 - repaired), 0.0)
    log[robot[owner]] -= 1.0

    moment = np.array([FIRST_DAY + timedelta(days=int(one)) for one in range(days)], "datetime64[us]")[day]
    experiment = in_experiment[owner]
    return pa.table(
        {
            "time": pa.array(moment + second.astype("timedelta64[s]"), pa.timestamp("us")),
            "user": pa.array([f"u{seed}-{one}" for one in range(users)]).take(pa.array(owner)),
            "population": coded(mine.astype(np.int64), ("rival", "ours")),
            "experiment": coded(experiment.astype(np.int64), (None, "readable-artifact")),
            "arm": coded(experiment * (1 + fixed[owner]), (None, "control", "fix")),
            "version": coded(late.astype(np.int64), ("1", "2")),
            "device": coded(device[owner], DEVICES),
            "os": coded(system[owner], SYSTEMS),
            "network": coded(network, NETWORKS),
            "navigation": coded(navigation, NAVIGATIONS),
            "start": coded(start, STARTS),
            "robot": coded(robot[owner].astype(np.int64), ("false", "true")),
            "metric": coded(np.zeros(n, np.int64), ("time_to_ready",)),
            "value": pa.array(np.round(np.exp(log), 3)),
        }
    )


def networks(
    random: np.random.Generator, mine: NDArray[np.bool_], late: NDArray[np.bool_], truth: Truth
) -> NDArray[np.int64]:
    """Network of every launch: the shares of 3g differ by population, and with the trap by version of `ours`."""
    slow = np.where(mine, truth.slow_network[0], truth.slow_network[1])
    if truth.simpson:
        slow = np.where(mine, np.where(late, slow * 1.7, slow * 0.3), slow)
    drawn = random.random(len(mine))
    return np.where(drawn < slow, 2, np.where(drawn < slow + (1 - slow) * 0.4, 1, 0)).astype(np.int64)


def slice_mask(
    truth: Truth, device: NDArray[np.int64], system: NDArray[np.int64], start: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Launches in the slow slice."""
    mask = np.ones(len(device), bool)
    for column, names, codes in (("device", DEVICES, device), ("os", SYSTEMS, system), ("start", STARTS, start)):
        if column in truth.where:
            mask &= codes == names.index(truth.where[column])
    return mask


def coded(codes: NDArray[np.int64], names: tuple[str | None, ...]) -> pa.Array:
    """Text by code."""
    return pa.array(names, pa.string()).take(pa.array(codes))


def write(table: pa.Table, path: Path) -> None:
    """As Parquet."""
    with replacing(path) as file:
        pq.write_table(table, file, compression="zstd")
