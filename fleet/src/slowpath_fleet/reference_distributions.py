"""Quantiles, tails and likelihoods of the distributions that intervals and p-values refer to.

From scipy.special, because importing scipy.stats takes longer than most commands do.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from .histogram import Floats


def t_quantile(share: float, freedom: float) -> float:
    """Student's t below which a share lies."""
    return float(special.stdtrit(freedom, share))


def t_two_sided(t: Floats | float, freedom: Floats | float) -> Floats:
    """Probability of a t at least as far from 0."""
    return np.asarray(2 * special.stdtr(freedom, -np.abs(t)))


def normal_quantile(share: float) -> float:
    """Standard normal deviate below which a share lies."""
    return float(special.ndtri(share))


def chi_squared_above(value: float, freedom: int) -> float:
    """Probability of a chi-squared at least as large."""
    return float(special.chdtrc(freedom, value))


def xlogy(x: Floats, y: Floats) -> Floats:
    """x ln y, which is 0 where x is 0."""
    return np.asarray(special.xlogy(x, y))
