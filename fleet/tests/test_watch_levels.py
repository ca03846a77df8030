"""watch: intervals of a change hold what its test holds, users and whole days."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from slowpath_fleet import clustered
from slowpath_fleet.bins import COARSE, LN_GAMMA
from slowpath_fleet.cells import COARSE_OFFSET
from slowpath_fleet.printed import DayPoint, Quantity, Series
from slowpath_fleet.reference_distributions import t_quantile
from slowpath_fleet.watch.analysis import without_interval
from slowpath_fleet.watch.change_point import best_split
from slowpath_fleet.watch.levels import levels
from slowpath_fleet.watch.series import Cells
from test_watch import FIRST, field, run, stored

DAYS, CHANGED, A_DAY = 16, 8, 500
SPREAD, STEP = 0.5, 0.3


def launches(random: np.random.Generator, scatter: float) -> Cells:
    """Launches of very many users, slower by STEP from a day on; `scatter`: by what days differ for everybody."""
    day = np.repeat(np.arange(DAYS), A_DAY)
    log = 6 + random.normal(0, SPREAD, len(day)) + random.normal(0, scatter, DAYS)[day] + STEP * (day >= CHANGED)
    scaled = log / LN_GAMMA
    fine = np.ceil(scaled).astype(np.int64)
    places = np.floor((scaled - (fine - 1)) * 256).astype(np.int64)
    group, ones = random.integers(0, 64, len(day)), np.ones(len(day), np.int64)
    return Cells(day, fine, ones, places, day, group, (fine + COARSE_OFFSET) // COARSE, ones, 0)


# Of users alone they cover less: most of the error of a median is that of days, of p90 half of it.
@pytest.mark.parametrize(("quantile", "of_users_at_most"), [(0.5, 0.75), (0.9, 0.9)])
def test_intervals_of_a_change_cover_it_where_days_differ_for_everybody(
    quantile: float, of_users_at_most: float
) -> None:
    random = np.random.default_rng(41)
    scatter = 0.05
    level = np.exp(6 + special.ndtri(quantile) * np.hypot(SPREAD, scatter))
    truths = (level, level * np.exp(STEP), level * np.expm1(STEP), np.expm1(STEP))
    tries, covered, of_users = 150, np.zeros(4), 0
    for _ in range(tries):
        cells = launches(random, scatter)
        daily = cells.daily(cells.threshold(quantile), DAYS)
        split = best_split(daily)
        assert split is not None
        # As they are printed: with the day that was found.
        before, after = levels(cells, daily, quantile, split, (0, split.at, split.until))
        found = (before.estimate, after.estimate, clustered.difference(before, after), clustered.ratio(before, after))
        covered += [one.low <= truth <= one.high for one, truth in zip(found, truths, strict=True)]
        plain = by_users(cells, quantile, (0, split.at, split.until))
        of_users += plain.low <= truths[2] <= plain.high
    assert (covered / tries >= 0.92).all() and (covered / tries <= 0.99).all()
    assert of_users / tries < of_users_at_most


def by_users(cells: Cells, quantile: float, days: tuple[int, int, int]) -> clustered.Estimate:
    """The difference as if days differed by their users alone."""
    sides = ((days[0], days[1]), (days[1], days[2]))
    return clustered.difference(
        *(clustered.quantile(cells.histogram(*side), cells.grouped(*side), quantile) for side in sides)
    )


def test_where_days_do_not_differ_intervals_stay_near_those_of_users() -> None:
    random = np.random.default_rng(42)
    wider = []
    for _ in range(20):
        cells = launches(random, 0.0)
        daily = cells.daily(cells.threshold(0.5), DAYS)
        split = best_split(daily)
        assert split is not None
        with_days = clustered.difference(*levels(cells, daily, 0.5, split, (0, CHANGED, DAYS)))
        plain = by_users(cells, 0.5, (0, CHANGED, DAYS))
        wider.append((with_days.high - with_days.low) / (plain.high - plain.low))
    # Two weeks say little of how much days differ: the t of few days is larger, and by chance they seem to.
    assert 1 <= np.mean(wider) < 1.4


@pytest.mark.parametrize("scatter", [0.0, 0.05])
def test_a_difference_has_the_error_of_its_test(scatter: float) -> None:
    random = np.random.default_rng(43)
    parts = []
    for _ in range(20):
        cells = launches(random, scatter)
        daily = cells.daily(cells.threshold(0.5), DAYS)
        split = best_split(daily)
        assert split is not None
        before, after = levels(cells, daily, 0.5, split, (0, CHANGED, DAYS))
        one = clustered.ratio(before, after)
        error = (np.log1p(one.high) - np.log1p(one.low)) / 2 / t_quantile(0.975, before.freedom)
        parts.append(np.log1p(one.value) / error / split.z)
    # In this series no day of the week has a level of its own, but the test has looked for one.
    assert np.mean(parts) == pytest.approx(1, abs=0.15)


def test_a_printed_change_has_the_error_of_days(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(44)
    days = 20
    table = field(45, slower=1.5, only_version=False, users=800, days=days)
    number = np.asarray([(date.fromisoformat(one) - FIRST).days for one in table["time"]])

    def width(scatter: float) -> float:
        """Of the interval of the change of device M2."""
        folder = tmp_path / f"{scatter}"
        folder.mkdir()
        values = table["value"] * np.exp(random.normal(0, scatter, days))[number]
        found = run(stored(folder, table | {"value": values}), capsys, "--by", "device", "--quantiles", "50")
        assert any("first day of a change is searched for" in note for note in found["notes"])
        (change,) = (one for one in found["changes"] if one["where"] == {"device": "M2"})
        return float(change["relative"]["high"] - change["relative"]["low"])

    # Of days alone it is some 1.5 * 2 t * 10 % * sqrt(1 / 13 + 1 / 7) = 0.3.
    assert width(0.0) < 0.15 < 0.2 < width(0.1)


def test_changes_and_days_without_an_interval_are_counted() -> None:
    none, some = Quantity(1.0, None, None, "ms"), Quantity(1.0, 0.5, 2.0, "ms")
    days = [DayPoint("2026-03-01", 9, {"50": some, "95": none}), DayPoint("2026-03-02", 9, {"50": none, "95": none})]
    found = without_interval([], [Series({}, "m", days)])
    assert [one.what for one in found] == ["intervals of 3 daily quantiles"] and found[0].remedy == clustered.REMEDY
    assert without_interval([], [Series({}, "m", days[:0])]) == []
