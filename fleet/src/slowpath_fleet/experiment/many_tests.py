"""Several metrics, several looks."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..clustered import Estimate
from .effect import NAN, Effect

LEVEL = 0.05


def holm(p: list[float]) -> list[float]:
    """Holm's adjusted p (Scand. J. Statist. 1979): controls any false discovery among all; NaN stays NaN."""
    known = [at for at, one in enumerate(p) if not math.isnan(one)]
    found = list(p)
    worst = 0.0
    for rank, at in enumerate(sorted(known, key=lambda one: p[one])):
        worst = max(worst, min(1.0, p[at] * (len(known) - rank)))
        found[at] = worst
    return found


def tuning(planned: float) -> float:
    """rho^2 of the mixture that makes the interval narrowest at `planned` units (Waudby-Smith et al. 2021, eq. 20)."""
    doubled = -2 * math.log(LEVEL)
    return (doubled + math.log(doubled + 1)) / planned


def always_valid(effect: Effect, units: int, planned: float) -> Effect:
    """The effect with intervals and p that hold at every look (asymptotic confidence sequence, normal mixture:
    Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas, arXiv 2103.06476, theorem 2.2)."""
    if math.isnan(effect.p):
        return effect
    scale = units * tuning(planned)
    reach = math.sqrt(2 * (scale + 1) / scale * math.log(math.sqrt(scale + 1) / LEVEL))
    z = effect.difference.value / effect.difference_error if effect.difference_error > 0 else 0.0
    evidence = z * z * scale / (2 * (scale + 1)) - 0.5 * math.log(scale + 1)
    wider = [
        Estimate(one.value, one.value - reach * error, one.value + reach * error)
        for one, error in ((effect.difference, effect.difference_error), (effect.relative, effect.relative_error))
    ]
    p = float(np.exp(-max(0.0, min(evidence, 700.0))))
    # The arms' own intervals are for one look; beside those that hold at every look they would pass for such.
    arms = [Estimate(one.value, NAN, NAN) for one in (effect.control, effect.treatment)]
    return dataclasses.replace(effect, control=arms[0], treatment=arms[1], difference=wider[0], relative=wider[1], p=p)
