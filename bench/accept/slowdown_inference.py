"""Inference of `known-slowdown`: exact binomial intervals, Welch's t-test, Fisher's test, announced power. Pure.

Checked against published values by `known-slowdown --check`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

NORMAL = statistics.NormalDist()
ERROR = 0.05
"""Permitted share of false alarms, of both tools."""
Z_LEVEL = NORMAL.inv_cdf(1 - ERROR / 2)
POWER = 0.8
"""The power at which `slowpath launch selftest` announces an effect."""
Z_POWER = NORMAL.inv_cdf(POWER)
ANNOUNCED_FACTOR = 3.9
"""What selftest announces is this times sigma by the root of the blocks (`crates/experiment/src/power.rs`)."""
CERTAIN = 0.99
"""No more power than this is demanded: further out the normal approximation promises what nobody announced."""


def announced_power(effect: float, detectable: float) -> float:
    """Power to find `effect`, where `detectable` is announced to be found in 80 %, both in the same unit.

    The announcement is read as a normal test of two sides: its standard error is `detectable / (z(0.975) + z(0.8))`, so the
    power is `Phi(2.80 effect / detectable - 1.96) + Phi(-2.80 effect / detectable - 1.96)`.
    """
    distance = (Z_LEVEL + Z_POWER) * effect / detectable
    return NORMAL.cdf(distance - Z_LEVEL) + NORMAL.cdf(-distance - Z_LEVEL)


def most_false_alarms(comparisons: int) -> int:
    """The most that may be flagged where there is nothing: 5 % and three binomial standard errors."""
    return math.floor(comparisons * ERROR + 3 * math.sqrt(comparisons * ERROR * (1 - ERROR)))


@dataclass(frozen=True)
class Share:
    """A share of comparisons with its exact 95 % interval (Clopper and Pearson, Biometrika 26 (1934), 404-413)."""

    count: int
    of: int

    @property
    def value(self) -> float:
        """The share itself; 0 of nothing."""
        return self.count / self.of if self.of else 0.0

    @property
    def low(self) -> float:
        """Lower end."""
        if self.count == 0:
            return 0.0
        return _solve(lambda p: incomplete_beta(self.count, self.of - self.count + 1, p), ERROR / 2)

    @property
    def high(self) -> float:
        """Upper end."""
        if self.count == self.of:
            return 1.0
        return _solve(lambda p: incomplete_beta(self.count + 1, self.of - self.count, p), 1 - ERROR / 2)


@dataclass(frozen=True)
class Welch:
    """Welch's t-test of two samples, and the ratio of their means with its 95 % interval."""

    p: float
    ratio: float
    low: float
    high: float


def welch(base: Sequence[float], other: Sequence[float]) -> Welch:
    """The test that hyperfine's own `scripts/welch_ttest.py` does on exported times.

    The interval of the ratio is Welch's on logarithms of the means, by the delta method: the error of `ln mean` is
    `s / (mean sqrt(n))`.
    """
    means = [statistics.fmean(sample) for sample in (base, other)]
    squares = [statistics.variance(sample) / len(sample) for sample in (base, other)]
    freedom = _freedom(squares, (len(base), len(other)))
    t = (means[1] - means[0]) / math.sqrt(sum(squares))
    relative = [square / mean**2 for square, mean in zip(squares, means, strict=True)]
    half = t_quantile(1 - ERROR / 2, _freedom(relative, (len(base), len(other)))) * math.sqrt(sum(relative))
    ratio = means[1] / means[0]
    return Welch(t_two_sided(t, freedom), ratio, ratio * math.exp(-half), ratio * math.exp(half))


def _freedom(squares: Sequence[float], sizes: Sequence[int]) -> float:
    """Degrees of freedom of Welch and Satterthwaite, from the squared standard errors."""
    return sum(squares) ** 2 / sum(square**2 / (size - 1) for square, size in zip(squares, sizes, strict=True))


def t_two_sided(t: float, freedom: float) -> float:
    """Two-sided p of Student's t."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def t_quantile(probability: float, freedom: float) -> float:
    """The quantile of Student's t above its median."""
    tail = 2 * (1 - probability)
    x = _solve(lambda x: incomplete_beta(freedom / 2, 0.5, x), tail)
    return math.sqrt(freedom * (1 - x) / x)


def fisher(one: Share, other: Share) -> float:
    """Two-sided p of Fisher's exact test that two shares are the same."""
    total, hits = one.of + other.of, one.count + other.count
    ways = math.comb(total, hits)

    def chance(count: int) -> float:
        return math.comb(one.of, count) * math.comb(other.of, hits - count) / ways

    seen = chance(one.count)
    possible = range(max(0, hits - other.of), min(one.of, hits) + 1)
    return min(1.0, sum(p for p in map(chance, possible) if p <= seen * (1 + 1e-9)))


def middle(values: Sequence[float]) -> tuple[float, float]:
    """What the middle 90 % of the values lie between."""
    ordered = sorted(values)
    cut = int(len(ordered) * 0.05)
    return ordered[cut], ordered[-1 - cut]


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (NIST DLMF 8.17.22, method of Lentz)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    c, d, fraction = 1.0, 0.0, 1.0
    for step in range(1000):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 / (1.0 + term * d or tiny)
        c = 1.0 + term / c or tiny
        fraction *= c * d
        if step > 0 and abs(c * d - 1.0) < 1e-14:
            break
    return front * (fraction - 1.0)


def _solve(rising: Callable[[float], float], target: float) -> float:
    """Where a function that rises over 0 to 1 reaches the target, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(100):
        centre = (low + high) / 2
        low, high = (centre, high) if rising(centre) < target else (low, centre)
    return (low + high) / 2


def check() -> None:
    """Compares with published values; raises `AssertionError`."""
    near = math.isclose
    assert near(incomplete_beta(2, 3, 0.4), 0.5248, abs_tol=1e-12)
    # Tables of Student's t: 2.228 at 10, 2.045 at 29 degrees of freedom.
    assert near(t_quantile(0.975, 10), 2.228139, abs_tol=1e-6) and near(t_quantile(0.975, 29), 2.045230, abs_tol=1e-6)
    assert near(t_two_sided(2.228139, 10), 0.05, abs_tol=1e-6)
    # Clopper and Pearson: 0 of 10 to 30.85 %, 5 of 10 from 18.71 to 81.29 %.
    assert near(Share(0, 10).high, 0.308498, abs_tol=1e-6) and near(Share(5, 10).low, 0.187086, abs_tol=1e-6)
    assert near(Share(5, 10).high, 1 - 0.187086, abs_tol=1e-6)
    # Fisher's tea: 3 of 4 against 1 of 4 gives 0.4857.
    assert near(fisher(Share(3, 4), Share(1, 4)), 34 / 70, abs_tol=1e-12)
    # Equal sizes and spreads: Welch's t is Student's, here t = 1 with 8 degrees of freedom.
    assert near(welch([1, 2, 3, 4, 5], [2, 3, 4, 5, 6]).p, 0.346594, abs_tol=1e-6)
    assert near(announced_power(1.0, 1.0), 0.8, abs_tol=1e-5) and near(announced_power(0.0, 1.0), ERROR, abs_tol=1e-12)
