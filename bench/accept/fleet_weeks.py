"""How often `watch` takes a weekly pattern for a change, and finds a step in one; run by bench/accept/fleet-weeks.

Simulated series of 64 groups of users, of whom 25 % of the launches are slow, searched by `best_split` at 0.01. Without
a step, a change must be claimed in at most 1 % of them, for every pattern, window and number of launches. Prints
Markdown; exit code 1 where that fails by more than three standard errors (the tables have dozens of cells).
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
from slowpath_fleet.identity import GROUPS
from slowpath_fleet.watch.change_point import Daily, best_split

LEVEL = 0.01
SLOW = 0.25
WINDOWS = (14, 15, 17, 20, 21, 24, 28, 30, 42, 60)
LAUNCHES = (4_000, 40_000)
# What days of the week add to the share of slow launches; series begin with the first.
PATTERNS = {
    "none": (0, 0, 0, 0, 0, 0, 0),
    "weekend, 2 pp": (0, 0, 0, 0, 0, 0.02, 0.02),
    "weekend, 4 pp": (0, 0, 0, 0, 0, 0.04, 0.04),
    "weekend, 8 pp": (0, 0, 0, 0, 0, 0.08, 0.08),
    "from a weekend on": (0.04, 0.04, 0, 0, 0, 0, 0),
    "Friday and Saturday": (0, 0, 0, 0, 0.04, 0.04, 0),
    "one day": (0, 0, 0, 0, 0, 0, 0.08),
    "no two days alike": (0.03, 0, 0.01, 0.05, 0.02, 0.09, 0.07),
}
WEEKEND = PATTERNS["weekend, 4 pp"]
# Steps in percentage points, 10 days before the end of the window, by launches a day.
STEPS = ((4_000, 1), (4_000, 2), (4_000, 3), (4_000, 5), (40_000, 1), (40_000, 2))
# Days that are 8 pp slower than their day of the week, counted from the end of the window.
HOLIDAYS = {
    "the last day": (-1,),
    "the last two": (-2, -1),
    "the last three": (-3, -2, -1),
    "the tenth and ninth last": (-10, -9),
}


def series(random: np.random.Generator, launches: int, shares: np.ndarray, scatter: float = 0.0) -> Daily:
    """Days with these shares; groups differ on all days, and with `scatter` days do for everybody."""
    shares = np.clip(shares + random.normal(0, scatter, len(shares)), 0.001, 0.999)
    logits = np.log(shares / (1 - shares))[:, None] + random.normal(0, 0.15, GROUPS)
    n = random.poisson(launches * random.dirichlet(np.full(GROUPS, 50.0)), (len(shares), GROUPS))
    return Daily(n.astype(np.float64), random.binomial(n, 1 / (1 + np.exp(-logits))).astype(np.float64))


def by_day(pattern: tuple[float, ...], days: int) -> np.ndarray:
    """Shares of slow launches."""
    return SLOW + np.resize(pattern, days)


def claimed(
    seed: int, tries: int, launches: int, shares: np.ndarray, scatter: float = 0.0, at: int | None = None
) -> float:
    """Share of the series in which a change is claimed; with `at`: on that day or one beside it."""
    random = np.random.default_rng([seed, len(shares), launches])
    found = (best_split(series(random, launches, shares, scatter)) for _ in range(tries))
    return sum(one is not None and one.p <= LEVEL and (at is None or abs(one.at - at) <= 1) for one in found) / tries


def table(title: str, heads: list[str], rows: list[tuple[str, list[float]]]) -> None:
    """Prints shares as Markdown."""
    print(f"\n{title}\n\n| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}")
    for name, cells in rows:
        print(f"| {name} | {' | '.join(f'{100 * cell:.1f} %' for cell in cells)} |", flush=True)


def main() -> int:
    """Runs it."""
    words = argparse.ArgumentParser(description="weekly patterns, holidays and steps in simulated series")
    words.add_argument("--tries", type=int, default=400, help="series of a cell")
    words.add_argument("--first", type=int, default=1000, help="seed")
    options = words.parse_args()
    seed, tries = options.first, options.tries
    windows = [f"{days} days" for days in WINDOWS]
    slack = 3 * math.sqrt(LEVEL * (1 - LEVEL) / tries)
    print(f"Seed {seed}, {tries} series a cell; three standard errors of {tries} at 1 % are {slack:.1%}.")

    quiet = [
        (f"{name}, {launches:,} launches a day", launches, pattern, 0.0)
        for name, pattern in PATTERNS.items()
        for launches in LAUNCHES
    ]
    quiet += [
        (f"weekend, 4 pp; days differ by {scatter:.1%}", 4_000, WEEKEND, scatter) for scatter in (0.005, 0.01, 0.03)
    ]
    false = [
        (name, [claimed(seed, tries, launches, by_day(pattern, days), scatter) for days in WINDOWS])
        for name, launches, pattern, scatter in quiet
    ]
    table("No change, and one is claimed:", ["pattern", *windows], false)

    odd = []
    for name, places in HOLIDAYS.items():
        for launches in LAUNCHES:
            cells = []
            for days in WINDOWS:
                shares = by_day(WEEKEND, days)
                shares[list(places)] += 0.08
                cells.append(claimed(seed, tries // 4, launches, shares))
            odd.append((f"{name}, {launches:,} launches a day", cells))
    table("Weekend, 4 pp, and odd days that are 8 pp slower; a change is claimed:", ["odd days", *windows], odd)

    found = []
    for launches, step in STEPS:
        for pattern, what in ((PATTERNS["none"], "no pattern"), (WEEKEND, "weekend, 4 pp")):
            cells = []
            for days in WINDOWS:
                shares = by_day(pattern, days)
                at = days - 10
                shares[at:] += step / 100
                cells.append(claimed(seed, tries // 4, launches, shares, at=at))
            found.append((f"+{step} pp, {launches:,} launches a day, {what}", cells))
    table("A step 10 days before the end is found, on its day or one beside it:", ["step", *windows], found)
    return 0 if all(cell <= LEVEL + slack for _, cells in false for cell in cells) else 1


if __name__ == "__main__":
    sys.exit(main())
