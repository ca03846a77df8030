"""Intervals of quantiles that respect users who appear many times. Pure.

Users fall into groups as a whole (`identity`), so sums over groups are independent. With k_g of the n_g launches of
group g at or below a boundary, the share F = sum k / sum n has the linearised (delta method) variance

    G / (G - 1) * sum_g (k_g - F n_g)^2 / N^2                                    (Cochran, Sampling Techniques, ch. 6)

A quantile's interval is that of its share, read off the histogram (Woodruff, JASA 1952). The boundary that is used is
an edge of a coarse bin near the quantile; what is taken from it is how much larger the variance is than that of
independent launches (the design effect), which changes slowly along the distribution. Differences and ratios of two
quantiles combine both intervals (MOVER: Zou and Donner, Stat. Med. 2008), with the correlation of their groups, for the
same user may have launches on both sides. The t distribution has the number of groups with launches, less one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cells import last_bin_of
from .histogram import Floats, Histogram, Integers
from .reference_distributions import normal_quantile, t_quantile

# Fewer groups with launches than this give no interval.
FEWEST_GROUPS = 8
# Launches beyond the quantile, on its thinner side, below which there is no interval.
FEWEST_BEYOND = 5


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
class QuantileEstimate:
    """A quantile, with what differences of it need."""

    estimate: Estimate
    # Linearised error of the share, a number a group of users: sums to 0.
    influence: Floats
    # Degrees of freedom.
    freedom: int


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


def quantile(histogram: Histogram, grouped: Grouped, share: float, level: float = 0.95) -> QuantileEstimate:
    """A quantile with its interval at a confidence level."""
    value = histogram.quantile(share)
    groups = grouped.groups
    freedom = groups - 1
    beyond = min(share, 1 - share) * histogram.n
    if groups < FEWEST_GROUPS or beyond < FEWEST_BEYOND:
        none = Estimate(value, float("nan"), float("nan"))
        return QuantileEstimate(none, np.zeros(len(grouped.counts)), max(0, freedom))
    influence = share_influence(histogram, grouped, share)
    reach = t_quantile(0.5 + level / 2, freedom) * standard_error(influence, groups)
    low, high = histogram.quantile(share - reach), histogram.quantile(share + reach)
    return QuantileEstimate(Estimate(value, min(low, value), max(high, value)), influence, freedom)


def correlation(a: QuantileEstimate, b: QuantileEstimate) -> float:
    """Correlation of two quantiles through users who have launches in both."""
    size = float(np.sqrt(np.sum(a.influence**2) * np.sum(b.influence**2)))
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
    value = histogram.quantile(share)
    return Estimate(value, histogram.quantile(share - reach), histogram.quantile(share + reach))


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
