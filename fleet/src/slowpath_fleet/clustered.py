"""Intervals of quantiles that respect users who appear many times. Pure.

Users fall into groups as a whole (`identity`), so sums over groups are independent. With k_g of the n_g launches of
group g at or below a boundary, the share F = sum k / sum n has the linearised (delta method) variance

    G / (G - 1) * sum_g (k_g - F n_g)^2 / N^2                                    (Cochran, Sampling Techniques, ch. 6)

A quantile's interval is that of its share, read off the histogram (Woodruff, JASA 1952). The boundary that is used is
an edge of a coarse bin near the quantile; what is taken from it is how much larger the variance is than that of
independent launches (the design effect), which changes slowly along the distribution. Where the interval of the share
leaves (0, 1), there is none of the quantile: the largest value is no upper end, for others may have larger ones.

Differences and ratios of two quantiles combine both intervals (MOVER: Zou and Donner, Stat. Med. 2008), with the
correlation of their groups, for the same user may have launches on both sides. The t distribution has the number of
groups with launches, less one. What days do to everybody does not show between groups: its variance is added (`Days`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cells import last_bin_of
from .histogram import Floats, Histogram, Integers
from .reference_distributions import normal_quantile, t_quantile

# Fewer groups with launches than this give no interval.
FEWEST_GROUPS = 8
# Launches beyond the quantile, on its thinner side, below which there is no interval; how many users they must come
# from follows from the ends of the interval.
FEWEST_BEYOND = 5
# What helps where a quantile has no interval.
REMEDY = "collect launches of more users, or choose a quantile nearer to 50"


@dataclass(frozen=True, slots=True)
class Grouped:
    """Launches by group of users (rows) and coarse bin (columns, ascending)."""

    coarse: Integers
    counts: Floats

    @property
    def groups(self) -> int:
        """Groups with launches."""
        return int((self.counts.sum(axis=1) > 0).sum())


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its interval; NaN ends where none can be given."""

    value: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        """Whether there are ends."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


@dataclass(frozen=True, slots=True)
class Days:
    """What whole days add to the error of a share, whoever launches on them."""

    variance: float
    # Degrees of freedom of that variance.
    freedom: float


@dataclass(frozen=True, slots=True)
class QuantileEstimate:
    """A quantile, with what differences of it need."""

    estimate: Estimate
    # Linearised error of the share, a number a group of users: sums to 0.
    influence: Floats
    # Degrees of freedom.
    freedom: float
    # What days add to the sum of the squares of `influence`; the days of one quantile are not those of another.
    of_days: float = 0.0
    # Why it has no interval; None where it has one, and where the launches of the data have no users.
    missing: str | None = None


def share_influence(histogram: Histogram, grouped: Grouped, share: float) -> Floats:
    """Error of the share at a quantile that each group contributes."""
    sizes = grouped.counts.sum(axis=1)
    upto = np.cumsum(grouped.counts, axis=1)
    total = sizes.sum()
    shares = upto.sum(axis=0) / max(total, 1.0)
    inner = (shares > 0) & (shares < 1)
    if not inner.any():
        # All launches lie in one coarse bin: independent launches, spread by the sizes of the groups.
        return np.asarray(np.sqrt(share * (1 - share) * sizes) / max(total, 1.0) * alternating(len(sizes)))
    distance = np.where(inner, np.abs(logit(np.clip(shares, 1e-12, 1 - 1e-12)) - logit(np.float64(share))), np.inf)
    at = int(np.argmin(distance))
    near = float(shares[at])
    errors = (upto[:, at] - near * sizes) / total
    return np.asarray(errors * np.sqrt(share * (1 - share) / (near * (1 - near))))


def alternating(length: int) -> Floats:
    """1, -1, 1, ..."""
    return np.asarray(np.where(np.arange(length) % 2 == 0, 1.0, -1.0))


def logit(share: Floats | np.float64) -> Floats:
    """Log odds."""
    return np.asarray(np.log(share / (1 - share)))


def standard_error(influence: Floats, groups: int) -> float:
    """From the errors that each group contributes."""
    return float(np.sqrt(groups / max(1, groups - 1) * np.sum(influence**2)))


def joint_freedom(by_users: Floats | float, by_days: Floats | float, of_users: float, of_days: float) -> Floats:
    """Degrees of freedom of a variance that users and days add up to (Satterthwaite, Biometrics Bulletin 1946).

    With as much scatter of the days as there may be within two standard errors: by chance few days scatter less, and
    would then pass for as many degrees of freedom as users have.
    """
    users, days = np.asarray(by_users, np.float64), np.asarray(by_days, np.float64)
    whole = np.asarray(users + days)
    most = np.minimum(whole, days + 2 * np.sqrt(2 / of_days) * whole)
    parts = users**2 / of_users + most**2 / of_days
    return np.asarray(np.divide(whole**2, parts, out=np.ones_like(whole), where=parts > 0))


def few_groups(groups: int) -> str | None:
    """Why groups with launches are too few for an error."""
    return f"its users fall into {groups} groups, fewer than {FEWEST_GROUPS}" if groups < FEWEST_GROUPS else None


def few_beyond(launches: int, share: float) -> str | None:
    """Why launches are too few for an error."""
    beyond = min(share, 1 - share) * launches
    return f"fewer than {FEWEST_BEYOND} launches lie beyond" if beyond < FEWEST_BEYOND else None


def without_end(share: float, reach: float) -> str | None:
    """Why the interval of a share is none of a quantile: no launch lies beyond an end that is not in (0, 1). The
    extreme value would stand for that end, however few users it comes from."""
    if share + reach >= 1:
        return "too few users have launches above for an upper end"
    if share - reach <= 0:
        return "too few users have launches below for a lower end"
    return None


def at_share(histogram: Histogram, share: float, reach: float) -> Estimate:
    """A quantile, with the values at both ends of its share's interval."""
    value = histogram.quantile(share)
    if without_end(share, reach) is not None:
        return Estimate(value, float("nan"), float("nan"))
    low, high = histogram.quantile(share - reach), histogram.quantile(share + reach)
    return Estimate(value, min(low, value), max(high, value))


def quantile(
    histogram: Histogram, grouped: Grouped, share: float, level: float = 0.95, days: Days | None = None
) -> QuantileEstimate:
    """A quantile with its interval at a confidence level; `days`: what whole days add to the error of its share."""
    groups = grouped.groups
    freedom: float = max(0, groups - 1)
    missing = few_groups(groups) or few_beyond(histogram.n, share)
    if missing is not None:
        none = Estimate(histogram.quantile(share), float("nan"), float("nan"))
        return QuantileEstimate(none, np.zeros(len(grouped.counts)), freedom, missing=missing)
    influence = share_influence(histogram, grouped, share)
    variance, of_days = standard_error(influence, groups) ** 2, 0.0
    if days is not None:
        freedom = float(joint_freedom(variance, days.variance, freedom, days.freedom))
        variance, of_days = variance + days.variance, days.variance * (groups - 1) / groups
    reach = t_quantile(0.5 + level / 2, freedom) * float(np.sqrt(variance))
    missing = without_end(share, reach)
    return QuantileEstimate(at_share(histogram, share, reach), influence, freedom, of_days, missing)


def correlation(a: QuantileEstimate, b: QuantileEstimate) -> float:
    """Correlation of two quantiles through users who have launches in both."""
    size = float(np.sqrt((np.sum(a.influence**2) + a.of_days) * (np.sum(b.influence**2) + b.of_days)))
    return float(np.clip(np.sum(a.influence * b.influence) / size, -1, 1)) if size > 0 else 0.0


def difference(a: QuantileEstimate, b: QuantileEstimate) -> Estimate:
    """b - a."""
    return mover(a.estimate, b.estimate, correlation(a, b))


def ratio(a: QuantileEstimate, b: QuantileEstimate) -> Estimate:
    """b / a - 1, by the difference of logarithms; NaN where a value is 0."""
    if min(a.estimate.value, b.estimate.value) <= 0:
        return Estimate(float("nan"), float("nan"), float("nan"))
    on_log = mover(logarithm(a.estimate), logarithm(b.estimate), correlation(a, b))
    return Estimate(*(float(np.expm1(end)) for end in (on_log.value, on_log.low, on_log.high)))


def logarithm(one: Estimate) -> Estimate:
    """An estimate on the log scale; an end at 0 becomes minus infinity's stand-in, the smallest double."""
    tiny = np.finfo(np.float64).tiny
    return Estimate(*(float(np.log(np.maximum(end, tiny))) for end in (one.value, one.low, one.high)))


def mover(a: Estimate, b: Estimate, r: float) -> Estimate:
    """Interval of b - a from those of a and b and their correlation (Zou and Donner 2008, eq. 2)."""
    value = b.value - a.value
    if not (a.has_interval and b.has_interval):
        return Estimate(value, float("nan"), float("nan"))
    a_low, a_high, b_low, b_high = a.value - a.low, a.high - a.value, b.value - b.low, b.high - b.value
    low = value - float(np.sqrt(max(0.0, b_low**2 + a_high**2 - 2 * r * b_low * a_high)))
    high = value + float(np.sqrt(max(0.0, b_high**2 + a_low**2 - 2 * r * b_high * a_low)))
    return Estimate(value, low, high)


def naive_quantile(histogram: Histogram, share: float, level: float = 0.95) -> Estimate:
    """What a quantile's interval would be if every launch came from another user. For tests and comparisons only."""
    reach = normal_quantile(0.5 + level / 2) * float(np.sqrt(share * (1 - share) / max(1, histogram.n)))
    return at_share(histogram, share, reach)


def grouped_of(groups: Integers, coarse: Integers, counts: Integers, size: int) -> Grouped:
    """From group cells; group -1 (no user) is left out."""
    known = groups >= 0
    found, where = np.unique(coarse[known], return_inverse=True)
    table = np.zeros((size, len(found)))
    np.add.at(table, (groups[known], where), counts[known])
    return Grouped(found.astype(np.int64), table)


def edges(grouped: Grouped) -> list[int]:
    """Last fine bin of every coarse column."""
    return [last_bin_of(int(one)) for one in grouped.coarse]
