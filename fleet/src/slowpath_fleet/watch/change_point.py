"""On which day a daily share of slow launches changed, and whether that is more than chance. Pure.

A day's share has two kinds of noise. Users differ, and the same users launch on many days: days are not independent, so
the error of (share after - share before) is taken from sums over groups of users (delta method, see `clustered`), which
holds whatever a user repeats. And days differ for everybody (a slow network, a holiday): that variance is what
neighboring days differ by beyond what users explain. With w the weight of a day in its side,

    SE^2 = G / (G - 1) * sum_g u_g^2  +  sigma^2 * sum_d w_d^2

Every day is tried as the first of the new level; the p of the best one is corrected for their number (Bonferroni), so a
change is claimed no more often than the level says. Then both sides are searched for further changes (binary
segmentation, Scott and Knott 1974).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..histogram import Floats
from ..reference_distributions import squared_normal, t_two_sided

# Days on each side of a change.
FEWEST_DAYS = 2
# Days of a series: fewer say nothing of how days scatter.
FEWEST_ALL_DAYS = 10
# Differences of neighboring days that say nothing of how days scatter: a change that came, and that went.
LEFT_OUT = 2
# Launches, launches above the threshold and groups of users on each side.
FEWEST_LAUNCHES, FEWEST_ABOVE, FEWEST_GROUPS = 100, 15, 24


@dataclass(frozen=True, slots=True)
class Daily:
    """Launches of a slice, and those above its threshold: [day, group of users]."""

    launches: Floats
    above: Floats

    def part(self, first: int, end: int) -> Daily:
        """Some of the days."""
        return Daily(self.launches[first:end], self.above[first:end])


@dataclass(frozen=True, slots=True)
class Split:
    """The best day to split a series at."""

    # Number of the first day after the change, and the days that were searched: first, end.
    at: int
    first: int
    end: int
    # Share after less share before, and its standard errors.
    shift: float
    z: float
    # Corrected for the number of days that were tried.
    p: float


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


def supported(one: Daily) -> bool:
    """Whether a side has enough to judge by."""
    above, launches = float(one.above.sum()), float(one.launches.sum())
    return (
        launches >= FEWEST_LAUNCHES
        and min(above, launches - above) >= FEWEST_ABOVE
        and int((one.launches.sum(0) > 0).sum()) >= FEWEST_GROUPS
    )


def of_days(one: Daily) -> tuple[Floats, Floats, Floats]:
    """Of every day: share, error by group, launches."""
    launches = one.launches.sum(1)
    size = np.maximum(launches, 1.0)
    shares = one.above.sum(1) / size
    errors = (one.above - shares[:, None] * one.launches) / size[:, None]
    return shares, np.asarray(errors), np.asarray(launches)


def scatter(one: Daily) -> float:
    """Variance of a day's share that users do not explain, from neighboring days.

    Half the squared difference of two neighbors (von Neumann, Ann. Math. Stat. 1941), less what their users explain. A
    change is in one difference only, so it does not hide itself in the scatter, as it would around one mean; the
    largest differences are left out, with the factor that makes up for them where differences are normal.
    """
    shares, errors, launches = of_days(one)
    known = (launches[1:] > 0) & (launches[:-1] > 0)
    of_users = variance(np.diff(errors, axis=0))[known]
    squares = np.diff(shares)[known] ** 2
    if len(squares) <= LEFT_OUT + 1:
        return 0.0
    kept = np.sort(squares)[:-LEFT_OUT]
    normal = squared_normal((np.arange(len(squares)) + 0.5) / len(squares))
    return max(0.0, float((kept.mean() * normal.mean() / normal[:-LEFT_OUT].mean() - of_users.mean()) / 2))


def split_at(one: Daily, at: int, of_day: float) -> tuple[float, float, float]:
    """Shift, its standard error and degrees of freedom for one day; `of_day` is the variance from `scatter`."""
    before, after = one.part(0, at), one.part(at, len(one.launches))
    of_users = float(variance(influence(after) - influence(before)))
    weights = sum(
        float((side.launches.sum(1) ** 2).sum() / max(float(side.launches.sum()) ** 2, 1.0)) for side in (before, after)
    )
    by_day = of_day * weights
    whole = of_users + by_day
    groups, days = one.launches.shape[1], len(one.launches)
    # Satterthwaite (Biometrics Bulletin 1946). Neighboring differences share days, and the largest are left out: about
    # half the days count.
    freedom = whole**2 / (of_users**2 / (groups - 1) + by_day**2 / ((days - 2) / 2)) if whole > 0 else groups - 1.0
    return share(after) - share(before), float(np.sqrt(whole)), freedom


def best_split(one: Daily, first: int = 0) -> Split | None:
    """The clearest change of a series; `first` is the number of its first day. None where it is too short."""
    days = len(one.launches)
    if days < FEWEST_ALL_DAYS:
        return None
    of_day = scatter(one)
    tried = 0
    best: tuple[float, int, float, float] | None = None
    for at in range(FEWEST_DAYS, days - FEWEST_DAYS + 1):
        if not (supported(one.part(0, at)) and supported(one.part(at, days))):
            continue
        tried += 1
        shift, error, freedom = split_at(one, at, of_day)
        z = shift / error if error > 0 else 0.0
        p = float(t_two_sided(np.asarray([z]), freedom)[0])
        if best is None or abs(z) > abs(best[3]):
            best = (p, at, shift, z)
    if best is None:
        return None
    p, at, shift, z = best
    return Split(first + at, first, first + days, shift, z, min(1.0, p * tried))


def further(one: Daily, found: Split, level: float) -> list[Split]:
    """The change and those on both sides of it whose p is at most `level`, by day.

    The day of the first one was sought while the others were still in its sides: each is sought once more between its
    neighbors.
    """
    days = [each.at for each in recursion(one, found, level)]
    refined: list[Split] = []
    for number, day in enumerate(days):
        first = refined[-1].at if refined else found.first
        end = days[number + 1] if number + 1 < len(days) else found.end
        again = best_split(one.part(first, end), first)
        if again is not None and again.p <= level:
            refined.append(again)
        elif day == found.at:
            refined.append(found)
    return refined


def recursion(one: Daily, found: Split, level: float) -> list[Split]:
    """Binary segmentation."""
    parts = []
    for first, end in ((found.first, found.at), (found.at, found.end)):
        inner = best_split(one.part(first, end), first)
        parts.append(recursion(one, inner, level) if inner is not None and inner.p <= level else [])
    return [*parts[0], found, *parts[1]]
