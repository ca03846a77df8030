"""Watches a store: series of all slices, changes that are more than chance, and what came with them."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

import numpy as np

from .. import clustered
from ..cells import TOTAL
from ..engine import Engine
from ..errors import wrong_usage
from ..printed import Change, DayPoint, Quantity, Series, Unavailable, Unit, WatchResult, quantity, unit_of
from ..slices.decomposition import adjusted
from ..store import MOST_VALUES, Store
from .change_point import (
    FEWEST_ABOVE,
    FEWEST_ALL_DAYS,
    FEWEST_GROUPS,
    FEWEST_LAUNCHES,
    WEEK,
    Daily,
    Split,
    best_split,
    fewest_days,
    further,
    influence,
    share,
    variance,
)
from .levels import levels
from .series import Cells, Day, days_of, read
from .versions import version_of

# Assigned, or left out: no conditions of a launch.
NOT_A_CONDITION = ("experiment", "arm", "robot")
# Series that are printed at most: those that changed, then those with most launches.
MOST_SERIES = 100
# Standard errors by which a slice must change more than all launches do, to be listed beside them.
MORE_THAN_ALL = 3.0
# Days that are watched where no `--since` is given: in longer windows a change needs more days before it is seen.
USUAL_DAYS = 60


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What is watched."""

    metric: str | None
    # `30d` before the last day of the data, or a date; None: the last USUAL_DAYS days.
    since: str | None
    # Columns whose values are slices; None: all that are conditions.
    columns: list[str] | None
    # Name in percent and share.
    quantiles: list[tuple[str, float]]
    fdr: float
    # Smallest relative change of the quantile that is listed.
    min_effect: float
    better_is_lower: bool


@dataclass(frozen=True, slots=True)
class Watched:
    """One slice at one quantile."""

    where: dict[str, str]
    cells: Cells
    quantile: tuple[str, float]
    threshold: int
    daily: Daily


def watch(store: Store, engine: Engine, options: WatchOptions) -> WatchResult:
    """Series and changes of a metric."""
    metric = store.metric(options.metric)
    unit = unit_of(store.manifest.units[metric])
    first_of_all, last = days_of(engine, metric)
    since = f"{USUAL_DAYS}d" if options.since is None else options.since
    first = max(first_of_all, beginning(since, last))
    days = int((last - first).astype(np.int64)) + 1
    slices = slices_of(store, engine, options, metric, (first, last))
    watched = [
        Watched(where, cells, quantile, threshold, cells.daily(threshold, days))
        for where, cells in slices
        if not cells.without_user and days >= FEWEST_ALL_DAYS
        for quantile in options.quantiles
        for threshold in [cells.threshold(quantile[1])]
    ]
    judged = [(one, split) for one in watched for split in [best_split(one.daily)] if split is not None]
    found, folded = listed(engine, judged, options, metric, unit, first)
    changed = [one.where for one in found]
    order = sorted(slices, key=lambda pair: (bool(pair[0]), pair[0] not in changed, -pair[1].launches))
    printed = [series(where, cells, metric, options, unit, first, days) for where, cells in order[:MOST_SERIES]]
    of_users = [one for one, (_, cells) in zip(printed, order[:MOST_SERIES], strict=True) if not cells.without_user]
    return WatchResult(
        metric=metric,
        since=str(first),
        until=str(last),
        series=printed,
        changes=found,
        tested=len(judged),
        folded=folded,
        notes=notes(options, len(slices), days, bool(first > first_of_all)),
        unavailable=[
            *unavailable(slices, days, len(judged)),
            *without_interval(found, of_users),
        ],
    )


def beginning(since: str, last: Day) -> Day:
    """The day that `30d` or a date means."""
    spelled = re.fullmatch(r"(\d{1,5})d", since.strip())
    if spelled:
        return last - np.timedelta64(int(spelled[1]) - 1, "D")
    try:
        return Day(datetime.date.fromisoformat(since.strip()), "D")
    except ValueError as error:
        raise wrong_usage("cannot use --since", since, "it is no number of days and no date", "write 30d") from error


def slices_of(
    store: Store, engine: Engine, options: WatchOptions, metric: str, days: tuple[Day, Day]
) -> list[tuple[dict[str, str], Cells]]:
    """All launches, and every value of every watched column."""
    dimensions = store.dimensions()
    if options.columns is None:
        columns = [name for name, n in dimensions.items() if name not in NOT_A_CONDITION and n <= MOST_VALUES]
    else:
        columns = options.columns
        unknown = next((name for name in columns if name not in dimensions), None)
        if unknown is not None:
            known = ", ".join(sorted(dimensions)) or "none"
            raise wrong_usage("cannot watch", unknown, "the data have no such column", f"use one of: {known}")
    total = read(engine, TOTAL, metric, *days)
    found: list[tuple[dict[str, str], Cells]] = [({}, cells) for cells in total.values()]
    if not found:
        remedy = "choose an earlier day"
        raise wrong_usage("cannot watch", str(store.directory), f"{metric} has no launches in these days", remedy)
    for column in sorted(columns):
        values = read(engine, column, metric, *days)
        # A column of one value is all launches once more.
        found += [({column: value}, cells) for value, cells in sorted(values.items())] if len(values) > 1 else []
    return found


def listed(
    engine: Engine,
    judged: list[tuple[Watched, Split]],
    options: WatchOptions,
    metric: str,
    unit: Unit,
    first: Day,
) -> tuple[list[Change], int]:
    """Changes, the clearest first, and how many slices changed no more than all launches did."""
    if not judged:
        return [], 0
    p = np.asarray([split.p for _, split in judged])
    q = adjusted(p)
    significant = np.flatnonzero(q <= options.fdr)
    # Changes beyond the first of a series were not among the tests that `q` adjusts for: they pass Bonferroni's bound.
    level = options.fdr / len(judged)
    of_all = {one.quantile: one.daily for one, _ in judged if not one.where}
    found: list[tuple[float, Change]] = []
    folded = 0
    for number in significant:
        one, split = judged[int(number)]
        splits = further(one.daily, split, level)
        ends = [0, *(each.at for each in splits), len(one.daily.launches)]
        for at, each in enumerate(splits):
            days = (ends[at], each.at, min(each.until, ends[at + 2]))
            if one.where and not stands_out(one, of_all.get(one.quantile), each):
                folded += 1
                continue
            adjusted_p = float(q[int(number)]) if each == split else min(1.0, each.p * len(judged))
            change = described(engine, one, each, days, metric, unit, first, adjusted_p, options)
            if is_clear(change.relative, each.shift, options.min_effect):
                found.append((abs(each.z), change))
    found.sort(key=lambda pair: -pair[0])
    return [change for _, change in found], folded


def is_clear(relative: Quantity, shift: float, min_effect: float) -> bool:
    """Whether the quantile itself moved, by enough; the test is of the share of slow launches.

    The quantiles are of all days of a side. Where one side has more slow days of the week, they can move against the
    share, which is compared day of the week by day of the week. Where too few users launch beyond a quantile to give an
    interval, the test decides alone.
    """
    if relative.value is None or abs(relative.value) < min_effect or relative.value * shift < 0:
        return False
    return relative.low is None or relative.high is None or relative.low * relative.high > 0


def stands_out(one: Watched, whole: Daily | None, split: Split) -> bool:
    """Whether a slice changed more than all launches did, judged by the groups that both share.

    The days are those that were tested: a change that went again is compared with the days before and after it. A
    slice that holds a part of what changed, as all do, changes with it; it adds nothing new.
    """
    if whole is None:
        return True
    shifts, errors = [], []
    for daily in (one.daily, whole):
        searched, at, until = daily.part(split.first, split.end), split.at - split.first, split.until - split.first
        within, without = searched.part(at, until), searched.without(at, until)
        shifts.append(share(within) - share(without))
        errors.append(influence(within) - influence(without))
    error = float(np.sqrt(variance(errors[0] - errors[1])))
    more = (shifts[0] - shifts[1]) * (1 if split.shift > 0 else -1)
    return error > 0 and more / error >= MORE_THAN_ALL


def described(
    engine: Engine,
    one: Watched,
    split: Split,
    days: tuple[int, int, int],
    metric: str,
    unit: Unit,
    first: Day,
    q: float,
    options: WatchOptions,
) -> Change:
    """A change as it is printed."""
    a, at, b = days
    before, after = levels(one.cells, one.daily, one.quantile[1], split, days)
    day = [first + np.timedelta64(number, "D") for number in days]
    version = version_of(engine, metric, one.where, one.threshold, (day[0], day[1], day[2]), split.shift)
    worse = (split.shift > 0) == options.better_is_lower
    return Change(
        where=one.where,
        metric=metric,
        quantile=one.quantile[0],
        day=str(day[1]),
        version=version,
        direction="worse" if worse else "better",
        before=quantity(before.estimate, unit),
        after=quantity(after.estimate, unit),
        difference=quantity(clustered.difference(before, after), unit),
        relative=quantity(clustered.ratio(before, after), "ratio"),
        q=q,
        since=str(day[0]),
        until=str(day[2] - np.timedelta64(1, "D")),
        n=[int(one.daily.part(*part).launches.sum()) for part in ((a, at), (at, b))],
    )


def series(
    where: dict[str, str], cells: Cells, metric: str, options: WatchOptions, unit: Unit, first: Day, days: int
) -> Series:
    """Every day of a slice."""
    points = []
    for day in range(days):
        histogram, grouped = cells.histogram(day, day + 1), cells.grouped(day, day + 1)
        if not histogram.n:
            continue
        quantiles = {}
        for name, at in options.quantiles:
            estimate = clustered.quantile(histogram, grouped, at).estimate
            if cells.without_user:
                estimate = clustered.Estimate(estimate.value, float("nan"), float("nan"))
            quantiles[name] = quantity(estimate, unit)
        points.append(DayPoint(str(first + np.timedelta64(day, "D")), histogram.n, quantiles))
    return Series(where, metric, points)


def notes(options: WatchOptions, slices: int, days: int, earlier: bool) -> list[str]:
    """What the lists do not show; `earlier`: there are days before the window."""
    found = ["Launches of robots are left out."]
    if earlier and options.since is None:
        found.insert(0, f"These are the last {USUAL_DAYS} days; --since names another first day.")
    if days >= FEWEST_ALL_DAYS:
        fewest = fewest_days(days)
        short = "; below three weeks, only large changes stand out from days that differ" if days < 3 * WEEK else ""
        found = [
            f"Changes are those that stay at a false-discovery rate of {options.fdr:g} in one look at all series. A "
            "day is compared with the same day of other weeks; users who launch on many days, and single days that "
            "differ for everybody, are accounted for, in the intervals of changes too.",
            f"In a window of {days} days a change needs {fewest} days on each side{short}. A holiday of several days "
            "can be listed as a change.",
            "The first day of a change is searched for in the same launches as its intervals come from: a change that "
            "is hardly clear tends to look larger than it is.",
            *found,
        ]
    if slices > MOST_SERIES:
        found.append(f"{slices - MOST_SERIES} further series with fewer launches were tested and are not printed.")
    return found


def unavailable(slices: list[tuple[dict[str, str], Cells]], days: int, tested: int) -> list[Unavailable]:
    """What cannot be tested, with the reason."""
    if days < FEWEST_ALL_DAYS:
        why = f"the window has {days} days, fewer than {FEWEST_ALL_DAYS}"
        return [Unavailable("changes", why, "ingest more days, or name an earlier --since")]
    without = sum(1 for _, cells in slices if cells.without_user)
    if without:
        why = "launches have no user, so days cannot be told from users who come back"
        return [Unavailable(f"changes of {without} series", why, "send a pseudonymous user with every launch")]
    if not tested:
        why = (
            f"no series has {FEWEST_LAUNCHES} launches, {FEWEST_ABOVE} of them beyond the quantile, and users in "
            f"{FEWEST_GROUPS} groups on both sides of a day"
        )
        return [Unavailable("changes", why, "collect launches of more users")]
    return []


def without_interval(changes: list[Change], of_users: list[Series]) -> list[Unavailable]:
    """Intervals that launches of too few users do not give; `of_users`: series of launches that have users."""
    points = [one for each in of_users for point in each.days for one in point.quantiles.values()]
    found = []
    for what, lacking in (
        ("change", sum(1 for one in changes if one.difference.low is None)),
        ("daily quantile", sum(1 for one in points if one.low is None)),
    ):
        if lacking:
            why = "too few users launch beyond the quantile in these days"
            found.append(
                Unavailable(f"intervals of {lacking:,} {what}{'s' if lacking > 1 else ''}", why, clustered.REMEDY)
            )
    return found
