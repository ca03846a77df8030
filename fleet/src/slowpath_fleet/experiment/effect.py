"""What every statistic yields: an effect of one arm against the control."""

from __future__ import annotations

from dataclasses import dataclass

from ..clustered import Estimate
from ..printed import Unit

NAN = float("nan")
NONE = Estimate(NAN, NAN, NAN)


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect, not corrected for others."""

    control: Estimate
    treatment: Estimate
    difference: Estimate
    relative: Estimate
    p: float
    unit: Unit
    # 1 where more is better, -1 where less is.
    good: int
    # Standard errors of difference and relative difference, for intervals that hold at every look.
    difference_error: float
    relative_error: float
    reason: str | None = None
    # What helps, where anything does.
    remedy: str | None = None


def impossible(reason: str, unit: Unit, good: int, remedy: str | None = None) -> Effect:
    """No effect can be given, with the reason."""
    return Effect(NONE, NONE, NONE, NONE, NAN, unit, good, NAN, NAN, reason, remedy)
