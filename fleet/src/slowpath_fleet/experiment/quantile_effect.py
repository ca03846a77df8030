"""Effects on quantiles, with units as clusters (delta method on the share below, Woodruff intervals; see `clustered`;
for online experiments: Deng, Knoblich, Lu, KDD 2018, section 4)."""

from __future__ import annotations

import numpy as np

from .. import clustered
from ..clustered import Estimate, QuantileEstimate
from ..histogram import Histogram, Integers
from ..printed import Unit
from ..reference_distributions import t_quantile, t_two_sided
from .effect import NAN, Effect, impossible
from .means import FEWEST_UNITS


def arm_quantile(
    unit: Integers, bins: Integers, counts: Integers, histogram: Histogram, share: float
) -> QuantileEstimate | None:
    """A quantile of one arm; None where it has too few units or launches."""
    found, where = np.unique(unit, return_inverse=True)
    if len(found) < FEWEST_UNITS or min(share, 1 - share) * histogram.n < clustered.FEWEST_BEYOND:
        return None
    sizes = np.bincount(where, counts, len(found))
    at = histogram.bin_at(share)
    below = bins <= at
    upto = np.bincount(where[below], counts[below], len(found))
    near = upto.sum() / sizes.sum()
    if not 0 < near < 1:
        return None
    influence = (upto - near * sizes) / sizes.sum() * np.sqrt(share * (1 - share) / (near * (1 - near)))
    freedom = len(found) - 1
    reach = t_quantile(0.975, freedom) * clustered.standard_error(influence, len(found))
    missing = clustered.without_end(share, reach)
    return QuantileEstimate(clustered.at_share(histogram, share, reach), influence, freedom, missing=missing)


def quantile_effect(
    control: QuantileEstimate | None, treatment: QuantileEstimate | None, unit: Unit, good: int
) -> Effect:
    """Effect of one arm; users of the arms differ, so their errors are independent."""
    if control is None or treatment is None:
        why = "an arm has too few units or launches for this quantile"
        return impossible(why, unit, good, clustered.REMEDY)
    # The error is read off the intervals: from one that is cut off at the largest value it would be too small.
    if control.missing is not None or treatment.missing is not None:
        return impossible("too few units beyond this quantile", unit, good, clustered.REMEDY)
    a, b = control.estimate, treatment.estimate
    difference = clustered.mover(a, b, 0.0)
    if min(a.low, b.low) <= 0:
        return Effect(a, b, difference, Estimate(NAN, NAN, NAN), NAN, unit, good, NAN, NAN, "a quantile is 0")
    on_log = clustered.mover(clustered.logarithm(a), clustered.logarithm(b), 0.0)
    freedom = min(control.freedom, treatment.freedom)
    wide = 2 * t_quantile(0.975, freedom)
    error = (on_log.high - on_log.low) / wide
    p = float(t_two_sided(on_log.value / error, freedom)) if error > 0 else (1.0 if on_log.value == 0 else 0.0)
    relative = Estimate(*(float(np.expm1(end)) for end in (on_log.value, on_log.low, on_log.high)))
    return Effect(
        a, b, difference, relative, p, unit, good, (difference.high - difference.low) / wide, error * b.value / a.value
    )
