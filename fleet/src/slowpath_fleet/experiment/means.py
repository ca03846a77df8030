"""Means, ratios of sums and shares of units, by tea-tasting (delta method for ratios: Deng, Knoblich, Lu, KDD 2018;
CUPED: Deng, Xu, Kohavi, Walker, WSDM 2013)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..clustered import Estimate
from ..histogram import Floats
from ..printed import Unit
from ..reference_distributions import normal_quantile, t_quantile
from .effect import Effect, impossible

# Units of an arm below which there is no interval.
FEWEST_UNITS = 10


def aggregates(columns: dict[str, Floats]) -> Any:
    """Means, variances and covariances of columns with a row a unit."""
    # Imported here: it brings scipy.stats, which takes long and which no other command needs.
    import tea_tasting.aggr

    names = list(columns)
    covariance = np.atleast_2d(np.cov(np.stack([columns[name] for name in names])))
    return tea_tasting.aggr.Aggregates(
        len(columns[names[0]]),
        {name: float(columns[name].mean()) for name in names},
        {name: float(covariance[at, at]) for at, name in enumerate(names)},
        {
            (min(a, b), max(a, b)): float(covariance[i, j])
            for i, a in enumerate(names)
            for j, b in enumerate(names)
            if i < j
        },
    )


def ratio(
    control: dict[str, Floats],
    treatment: dict[str, Floats],
    *,
    denominator: bool,
    covariates: bool,
    unit: Unit,
    good: int,
) -> Effect:
    """Effect on sum(numer) / sum(denom), or on the mean of numer; columns are numer, denom, numer0, denom0.

    The covariates (`0`) are those of the pre-period.
    """
    import tea_tasting

    if min(len(control["numer"]), len(treatment["numer"])) < FEWEST_UNITS:
        return impossible(f"an arm has fewer than {FEWEST_UNITS} units", unit, good)
    if denominator and min(control["denom"].sum(), treatment["denom"].sum()) <= 0:
        return impossible("an arm has no launch", unit, good)
    used = ["numer", *(["denom"] if denominator else [])]
    earlier = [f"{name}0" for name in used] if covariates else []
    both = [{name: side[name] for name in used + earlier} for side in (control, treatment)]
    if all(np.ptp(side["numer"]) == 0 for side in both) and not denominator:
        return impossible("all units have the same value", unit, good)
    metric = tea_tasting.RatioOfMeans(
        "numer",
        "denom" if denominator else None,
        "numer0" if covariates else None,
        "denom0" if covariates and denominator else None,
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            found = metric.analyze({0: aggregates(both[0]), 1: aggregates(both[1])}, 0, 1)
    except (ValueError, ZeroDivisionError, RuntimeWarning):
        # The square root of a variance that rounding made negative, or a division by one that is 0.
        return impossible("units do not vary beyond the covariates, if any", unit, good)
    error = (
        found.effect_size / found.statistic
        if found.statistic
        else ((found.effect_size_ci_upper - found.effect_size_ci_lower) / (2 * normal_quantile(0.975)))
    )
    # Of the relative effect only the interval is known; the control's own error is in it.
    relative_error = (found.rel_effect_size_ci_upper - found.rel_effect_size_ci_lower) / (2 * normal_quantile(0.975))
    return Effect(
        mean_interval(both[0], denominator),
        mean_interval(both[1], denominator),
        Estimate(found.effect_size, found.effect_size_ci_lower, found.effect_size_ci_upper),
        Estimate(found.rel_effect_size, found.rel_effect_size_ci_lower, found.rel_effect_size_ci_upper),
        float(found.pvalue),
        unit,
        good,
        abs(float(error)),
        abs(float(relative_error)),
    )


def mean_interval(columns: dict[str, Floats], denominator: bool) -> Estimate:
    """Mean of one arm as it was measured, without covariates."""
    numer = columns["numer"]
    denom = columns["denom"] if denominator else np.ones(len(numer))
    value = float(numer.sum() / denom.sum())
    residual = numer - value * denom
    error = float(residual.std(ddof=1) / np.sqrt(len(numer)) / denom.mean())
    reach = t_quantile(0.975, len(numer) - 1) * error
    return Estimate(value, value - reach, value + reach)
