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
from ..reference_distributions import t_two_sided
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
    """How clearly slices differ, to rank those that are significant: z of the rate above the threshold, or of the share
    of launches where mix is the larger part.

    `t` cannot tell a slow slice from one that merely contains it: the error of a contribution is mostly that of the
    slice's share of launches, which both have. The rate is diluted in a larger slice and based on less in a smaller.
    Launches count as independent here (as in a scan statistic, Kulldorff 1997): the design effect is much the same for
    slices within each other, and its jackknife estimate is too noisy to rank by.
    """
    launches, above, size = slices.launches.sum(2), slices.above.sum(2), total.launches.sum(2)
    part = parts(launches, above, size, total.above.sum(2))
    rate = above.sum(1) / np.maximum(launches.sum(1), 1.0)
    share = launches.sum(1) / np.maximum(size.sum(1), 1.0)
    rate_error = np.sqrt(rate * (1 - rate) * (1 / np.maximum(launches, 1.0)).sum(1))
    share_error = np.sqrt(share * (1 - share) * (1 / np.maximum(size, 1.0)).sum(1))
    moved = launches[:, 1] / np.maximum(size[:, 1], 1.0) - launches[:, 0] / np.maximum(size[:, 0], 1.0)
    by_rate = np.abs(part.within) >= np.abs(part.mix)
    return np.where(by_rate, in_errors(part.gap, rate_error), in_errors(moved, share_error))


def in_errors(values: Floats, errors: Floats) -> Floats:
    """Distance from 0 in standard errors; 0 where there is no error to speak of."""
    known = errors > 0
    return np.where(known, np.abs(values) / np.where(known, errors, 1.0), 0.0)


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
