"""On which day a daily share of slow launches changed, and whether that is more than chance. Pure.

A day's share has a weekly pattern and two kinds of noise. Saturdays are slower than Fridays, or Fridays than Thursdays:
a day is compared with the same day of other weeks only (least squares on the day of the week), whichever days people
have off. Users differ, and the same users launch on many days: days are not independent, so the error of a difference
is taken from sums over groups of users (delta method, see `clustered`), which holds whatever a user repeats. And days
differ for everybody (a slow network, a holiday): that variance is what the residuals have beyond what users explain.
With w the weight of a day in the difference, and u_g what group g contributes,

    SE^2 = G / (G - 1) * sum_g u_g^2  +  sigma^2 * sum_d w_d^2

The levels before and after, which are quantiles, have the same two parts in their errors (`day_scatter`, `levels`).

Every interval of days is tried: one that ends with the series is a change that stayed, another one came and went. The p
of the best one is corrected for their number (Bonferroni), so a change is claimed no more often than the level says.
Then both sides are searched for further changes (binary segmentation, Scott and Knott 1974).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..clustered import Days, joint_freedom
from ..histogram import Floats, Integers
from ..reference_distributions import t_two_sided

WEEK = 7
# Days of a series: in fewer, days are left that no other week has.
FEWEST_ALL_DAYS = 2 * WEEK
# Launches, launches above the threshold and groups of users on each side.
FEWEST_LAUNCHES, FEWEST_ABOVE, FEWEST_GROUPS = 100, 15, 24
# Intervals whose groups are looked at together: there are as many intervals as days squared, in long windows millions.
AT_ONCE = 8_192


@dataclass(frozen=True, slots=True)
class Daily:
    """Launches of a slice, and those above its threshold: [day, group of users]."""

    launches: Floats
    above: Floats

    def part(self, first: int, end: int) -> Daily:
        """Some of the days."""
        return Daily(self.launches[first:end], self.above[first:end])

    def without(self, first: int, end: int) -> Daily:
        """The other days."""
        others = np.r_[:first, end : len(self.launches)]
        return Daily(self.launches[others], self.above[others])


@dataclass(frozen=True, slots=True)
class Split:
    """The best day to split a series at."""

    # Number of the first day of another level, and of the first day after it: `end` if it stayed.
    at: int
    until: int
    # The days that were searched: first, end.
    first: int
    end: int
    # Share at that level less share of all other days, as between the same days of the week, and its standard errors.
    shift: float
    z: float
    # Corrected for the number of intervals that were tried.
    p: float
    # sigma^2, and its degrees of freedom.
    of_day: float
    day_freedom: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """Days that may have another level: numbers of the first one, and of the first one after them."""

    first: Integers
    end: Integers

    def where(self, wanted: NDArray[np.bool_]) -> Intervals:
        """Some of them."""
        return Intervals(self.first[wanted], self.end[wanted])

    def sums(self, by_day: Floats) -> Floats:
        """Sum over the days of each interval."""
        until = np.zeros((len(by_day) + 1, *by_day.shape[1:]))
        until[1:] = by_day.cumsum(0)
        return np.asarray(until[self.end] - until[self.first])

    def squares(self, form: Floats) -> Floats:
        """Sum over all pairs of days of each interval."""
        until = np.zeros((len(form) + 1, len(form) + 1))
        until[1:, 1:] = form.cumsum(0).cumsum(1)
        a, b = self.first, self.end
        return np.asarray(until[b, b] - until[a, b] - until[b, a] + until[a, a])


def influence(one: Daily) -> Floats:
    """What every group of users contributes to the error of the share of all these days."""
    launches, above = one.launches.sum(0), one.above.sum(0)
    total = max(float(launches.sum()), 1.0)
    return np.asarray((above - above.sum() / total * launches) / total)


def share(one: Daily) -> float:
    """Share of the launches above the threshold."""
    return float(one.above.sum() / max(float(one.launches.sum()), 1.0))


def variance(influences: Floats) -> Floats:
    """From errors by group (last axis)."""
    groups = influences.shape[-1]
    return np.asarray(groups / (groups - 1) * np.sum(influences**2, axis=-1))


def fewest_days(days: int) -> int:
    """Days on each side of a change: so many that one odd day (a holiday) is no change, and two seldom are.

    If k of a side's m days are off by the same and all others alike, t is about sqrt((days - 8) k / (m - k)).
    """
    return max(4, 2 + days // 9)


def candidates(one: Daily) -> Intervals:
    """The intervals that are tried: those within and without which there is enough to judge by."""
    days = len(one.launches)
    fewest = fewest_days(days)
    found = Intervals(*np.triu_indices(days + 1, fewest))
    found = found.where((found.first >= fewest) & ((found.end == days) | (found.end <= days - fewest)))
    pieces = [
        Intervals(found.first[at : at + AT_ONCE], found.end[at : at + AT_ONCE])
        for at in range(0, len(found.first), AT_ONCE)
    ]
    return found.where(np.concatenate([np.zeros(0, np.bool_), *(enough(one, piece) for piece in pieces)]))


def enough(one: Daily, tried: Intervals) -> NDArray[np.bool_]:
    """Whether there is enough to judge by, within and without."""
    by_group = tried.sums(one.launches)
    launches, above = by_group.sum(1), tried.sums(one.above.sum(1))
    known = np.ones(len(launches), np.bool_)
    of_all = one.launches.sum(0)
    for n, slow, groups in (
        (launches, above, (by_group > 0).sum(1)),
        (of_all.sum() - launches, one.above.sum() - above, (by_group < of_all).sum(1)),
    ):
        known &= (n >= FEWEST_LAUNCHES) & (np.minimum(slow, n - slow) >= FEWEST_ABOVE) & (groups >= FEWEST_GROUPS)
    return known


@dataclass(frozen=True, slots=True)
class Fitted:
    """Of every interval: the step in it, and what its error is made of."""

    # How much higher its share is, the standard error (0: unknown), and degrees of freedom.
    shift: Floats
    error: Floats
    freedom: Floats
    # sigma^2: the variance of a day's share beyond its users, where there is that step.
    of_day: Floats
    # Degrees of freedom of sigma^2.
    day_freedom: float


def regression(one: Daily, weekday: Integers, tried: Intervals) -> Fitted:
    """Steps and their errors.

    Least squares, weighted by launches, on the day of the week and on being in the interval. `rest` takes what belongs
    to the day of the week out of both (Frisch and Waugh, Econometrica 1933), so all sums are over days of intervals.
    """
    launches = one.launches.sum(1)
    shares = one.above.sum(1) / launches
    errors = (one.above - shares[:, None] * one.launches) / launches[:, None]
    groups = errors.shape[1]
    of_users = groups / (groups - 1) * errors @ errors.T
    weight = launches / launches.mean()
    same = weekday[:, None] == weekday
    rest = np.diag(weight) - same * np.outer(weight, weight) / (same @ weight)

    size = tried.squares(rest)
    # 0 where the interval has all days of some days of the week, and part of none.
    known = size > 1e-9
    size = np.where(known, size, 1.0)
    shift = tried.sums(rest @ shares) / size
    users, scale = tried.squares(rest @ of_users @ rest) / size, tried.squares(rest @ rest) / size
    residual = shares @ rest @ shares - size * shift**2
    of_day = (residual - (np.sum(rest * of_users) - users)) / np.maximum(np.trace(rest) - scale, 1e-9)
    of_day = np.maximum(0.0, of_day)
    by_users, by_days = users / size, of_day * scale / size
    day_freedom = max(1.0, float(np.trace(rest) ** 2 / np.sum(rest**2)) - 1)
    freedom = joint_freedom(by_users, by_days, groups - 1, day_freedom)
    return Fitted(shift, np.sqrt(np.where(known, by_users + by_days, 0.0)), freedom, of_day, day_freedom)


def best_split(one: Daily, first: int = 0) -> Split | None:
    """The clearest change of a series; `first` is the number of its first day. None where it is too short."""
    days = np.flatnonzero(one.launches.sum(1))
    # A level for each day of the week, and one more after the change, must leave a residual.
    if len(one.launches) < FEWEST_ALL_DAYS or len(days) < len(np.unique(days % WEEK)) + 2:
        return None
    known = Daily(one.launches[days], one.above[days])
    tried = candidates(known)
    fitted = regression(known, days % WEEK, tried)
    z = np.divide(fitted.shift, fitted.error, out=np.zeros_like(fitted.shift), where=fitted.error > 0)
    stayed = tried.end == len(days)
    # Half of the level is for changes that stayed: those that went again are many more, and would take all of it.
    tries = 2 * np.where(stayed, stayed.sum(), (~stayed).sum())
    p = np.minimum(1.0, t_two_sided(z, fitted.freedom) * tries)
    if not len(p):
        return None
    best = int(np.lexsort((-np.abs(z), p))[0])
    at = int(days[tried.first[best]])
    until = len(one.launches) if stayed[best] else int(days[tried.end[best] - 1]) + 1
    end = first + len(one.launches)
    return Split(
        at=first + at,
        until=first + until,
        first=first,
        end=end,
        shift=float(fitted.shift[best]),
        z=float(z[best]),
        p=float(p[best]),
        of_day=float(fitted.of_day[best]),
        day_freedom=fitted.day_freedom,
    )


def day_scatter(one: Daily, split: Split, days: tuple[int, int], above: float) -> Days:
    """What days that differ for everybody add to the error of the share above a quantile of some of the days.

    `one` is the whole series, `above` the share above the quantile. sigma^2 belongs to the share above the threshold,
    and to both sides of the step. A day that takes everybody's launches by a factor moves a share of s by about
    s (1 - s) times the same (exactly so where launches are log-logistic), and so sigma^2 is taken to another share.
    """
    searched, at, until = one.part(split.first, split.end), split.at - split.first, split.until - split.first
    sides = [searched.part(at, until), searched.without(at, until)]
    days_of = [int(np.count_nonzero(side.launches.sum(1))) for side in sides]
    moved = float(np.average([(share(side) * (1 - share(side))) ** 2 for side in sides], weights=days_of))
    launches = one.part(*days).launches.sum(1)
    together = float(np.sum(launches**2) / max(float(launches.sum()), 1.0) ** 2)
    scale = (above * (1 - above)) ** 2 / moved if moved > 0 else 0.0
    return Days(split.of_day * scale * together, split.day_freedom)


def further(one: Daily, found: Split, level: float) -> list[Split]:
    """The change and those on both sides of it whose p is at most `level`, by day.

    The day of the first one was sought while the others were still in its sides: each is sought once more between its
    neighbors. Where those leave too little to search, it stays as it was found.
    """
    rough = recursion(one, found, level)
    refined: list[Split] = []
    for number, each in enumerate(rough):
        first = refined[-1].at if refined else found.first
        end = rough[number + 1].at if number + 1 < len(rough) else found.end
        again = best_split(one.part(first, end), first)
        if again is not None and again.p <= level:
            refined.append(again)
        elif again is None or each is found:
            refined.append(each)
    return refined


def recursion(one: Daily, found: Split, level: float) -> list[Split]:
    """Binary segmentation."""
    parts = []
    for first, end in ((found.first, found.at), (found.at, found.end)):
        inner = best_split(one.part(first, end), first)
        parts.append(recursion(one, inner, level) if inner is not None and inner.p <= level else [])
    return [*parts[0], found, *parts[1]]
