"""What a slice contributes to the excess of launches above the baseline's quantile. Pure.

With w the share of a side's launches that fall into slice s, r their rate above the threshold, R the rate of the whole
side, and bars for means of both sides (Kitagawa, JASA 1955):

    excess      E   = R_others - R_baseline
    within_s        = w̄ (r_others - r_baseline)
    mix_s           = (w_others - w_baseline) (r̄ - R̄)
    contribution_s  = within_s + mix_s

Over the values of a column contributions add up to E. Taking r̄ - R̄ instead of r̄ leaves that sum as it is (the shares
add up to 1 on both sides), and a slice that merely grew, with an ordinary rate, contributes nothing.

Standard errors: delete-a-group jackknife over the groups of users (Shao and Tu, The Jackknife and Bootstrap, ch. 5),
t distribution with the number of groups less one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..histogram import Floats
from ..reference_distributions import t_two_sided, xlogy
from .cube import Counts


@dataclass(frozen=True, slots=True)
class Parts:
    """Of every slice (or every slice and deleted group)."""

    within: Floats
    mix: Floats
    # Rate of the others less that of the baseline.
    gap: Floats

    @property
    def contribution(self) -> Floats:
        """Within and mix together."""
        return self.within + self.mix


def parts(launches: Floats, above: Floats, all_launches: Floats, all_above: Floats) -> Parts:
    """The decomposition; the second axis is the side (baseline, others), further axes are kept."""
    size = np.maximum(all_launches, 1.0)
    share = launches / size
    rate = above / np.maximum(launches, 1.0)
    # A side without such launches says nothing of their rate: the other side's stands for it.
    empty = launches <= 0
    rate = np.where(empty, rate[:, ::-1], rate)
    whole = (all_above / size).mean(axis=1)
    gap = rate[:, 1] - rate[:, 0]
    return Parts(share.mean(axis=1) * gap, (share[:, 1] - share[:, 0]) * (rate.mean(axis=1) - whole), gap)


def excess(launches: Floats, above: Floats) -> Floats:
    """Rate of the others less that of the baseline."""
    rate = above / np.maximum(launches, 1.0)
    return np.asarray(rate[:, 1] - rate[:, 0])


@dataclass(frozen=True, slots=True)
class Tested:
    """Estimates of every slice with jackknife errors."""

    whole: Parts
    contribution_error: Floats
    within_error: Floats
    gap_error: Floats
    # Contribution as a share of the excess, and its error.
    share: Floats
    share_error: Floats
    freedom: int

    @property
    def t(self) -> Floats:
        """Contribution in standard errors; 0 where there is no error to speak of."""
        known = self.contribution_error > 0
        return np.where(known, self.whole.contribution / np.where(known, self.contribution_error, 1.0), 0.0)

    @property
    def p(self) -> Floats:
        """Two-sided p of no contribution."""
        return t_two_sided(self.t, self.freedom)


def with_equal_mixes(slices: Counts, total: Counts) -> tuple[float, float]:
    """Difference of the rates that is left where both sides have the same mix of the values of a column, and its
    jackknife error; `slices` are all values of the column."""
    whole = parts(slices.launches.sum(2), slices.above.sum(2), total.launches.sum(2), total.above.sum(2))
    without = parts(deleted(slices.launches), deleted(slices.above), deleted(total.launches), deleted(total.above))
    return float(whole.within.sum()), float(error(without.within.sum(axis=0)))


def evidence(slices: Counts, total: Counts) -> Floats:
    """How much better two rates above the threshold describe a slice than one for both sides, in nats, to rank those
    that are significant; of the shares of launches where mix is the larger part.

    `t` cannot tell a slow slice from one that merely contains it: the error of a contribution is mostly that of the
    slice's share of launches, which both have. Standard errors under "no difference" cannot either where the baseline's
    rate is small, for then they grow with the difference. The likelihood ratio (Wilks 1938; in scans of many subsets
    Kulldorff 1997) can: a larger slice dilutes the difference, a smaller one has less of it.

    Launches count as independent here; `design_effect` says how far they are from it.
    """
    launches, above, size = slices.launches.sum(2), slices.above.sum(2), total.launches.sum(2)
    part = parts(launches, above, size, total.above.sum(2))
    by_rate = np.abs(part.within) >= np.abs(part.mix)
    return np.where(by_rate, likelihood_ratio(above, launches), likelihood_ratio(launches, size))


def likelihood_ratio(k: Floats, n: Floats) -> Floats:
    """Log likelihood of a share a side (second axis) less that of one share for both; k of n."""
    of_sides = log_likelihood(k, n).sum(axis=1)
    return np.asarray(np.maximum(0.0, of_sides - log_likelihood(k.sum(axis=1), n.sum(axis=1))))


def log_likelihood(k: Floats, n: Floats) -> Floats:
    """Of k of n at their own share k / n, without what does not depend on the share."""
    share = k / np.maximum(n, 1.0)
    return np.asarray(xlogy(k, share) + xlogy(n - k, 1 - share))


def design_effect(slices: Counts, gap_error: Floats) -> float:
    """How much larger variances of gaps, with these errors, are than those of independent launches (Kish, Survey
    Sampling 1965, ch. 8): the median over slices, for the jackknife's estimate of one is noisy; at least 1."""
    launches, above = slices.launches.sum(2), slices.above.sum(2)
    rate = above / np.maximum(launches, 1.0)
    independent = (rate * (1 - rate) / np.maximum(launches, 1.0)).sum(axis=1)
    known = (independent > 0) & (launches > 0).all(axis=1)
    return max(1.0, float(np.median(gap_error[known] ** 2 / independent[known]))) if known.any() else 1.0


def deleted(counts: Floats) -> Floats:
    """Sums without each group: [..., group]."""
    return np.asarray(counts.sum(axis=2, keepdims=True) - counts)


def error(of_deleted: Floats) -> Floats:
    """Jackknife error from estimates without each group (last axis)."""
    groups = of_deleted.shape[-1]
    centred = of_deleted - of_deleted.mean(axis=-1, keepdims=True)
    return np.asarray(np.sqrt((groups - 1) / groups * np.sum(centred**2, axis=-1)))


def tested(slices: Counts, total: Counts) -> Tested:
    """Estimates and errors of slices."""
    groups = slices.launches.shape[2]
    whole = parts(slices.launches.sum(2), slices.above.sum(2), total.launches.sum(2), total.above.sum(2))
    without = parts(deleted(slices.launches), deleted(slices.above), deleted(total.launches), deleted(total.above))
    gap = excess(total.launches.sum(2), total.above.sum(2))
    gaps = excess(deleted(total.launches), deleted(total.above))
    return Tested(
        whole,
        error(without.contribution),
        error(without.within),
        error(without.gap),
        whole.contribution / safe(gap),
        error(without.contribution / safe(gaps)),
        groups - 1,
    )


def safe(values: Floats) -> Floats:
    """Values that can be divided by."""
    return np.where(np.abs(values) < 1e-12, 1e-12, values)


def adjusted(p: Floats) -> Floats:
    """Benjamini-Hochberg adjusted p (JRSS B 1995); valid under the positive dependence that overlapping slices have."""
    n = len(p)
    order = np.argsort(p)
    ranked = p[order] * n / np.arange(1, n + 1)
    found = np.empty(n)
    found[order] = np.minimum(1.0, np.minimum.accumulate(ranked[::-1])[::-1])
    return found
