"""Inference: ratios paired by round, their median, and a bootstrap interval. Pure."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass

RESAMPLES = 5000


@dataclass
class Ratio:
    """A ratio to the base, or a difference of two, with its 95 % interval (percentile bootstrap of the median over rounds)."""

    value: float
    low: float
    high: float
    rounds: int


def ratio_of(values: dict[int, list[float]], base: dict[int, list[float]], seed: int = 1) -> Ratio | None:
    """The median over rounds of (median of a round's values / median of the same round's base)."""
    return median_over_rounds(by_round(values, base), seed)


def above_of(
    values: dict[int, list[float]], other: dict[int, list[float]], base: dict[int, list[float]], seed: int = 1
) -> Ratio | None:
    """The median over rounds of (ratio of the values to the base - ratio of the other's to it)."""
    ratios, others = by_round(values, base), by_round(other, base)
    return median_over_rounds({number: ratio - others[number] for number, ratio in ratios.items() if number in others}, seed)


def by_round(values: dict[int, list[float]], base: dict[int, list[float]]) -> dict[int, float]:
    """A round's median by that of the same round's base, where it has both."""
    return {
        number: statistics.median(values[number]) / statistics.median(base[number])
        for number in sorted(values)
        if values[number] and base.get(number)
    }


def median_over_rounds(rounds: dict[int, float], seed: int) -> Ratio | None:
    """The median with its interval."""
    ratios = list(rounds.values())
    if not ratios:
        return None
    source = random.Random(seed)
    medians = sorted(statistics.median(source.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    low, high = medians[round(0.025 * RESAMPLES)], medians[round(0.975 * RESAMPLES) - 1]
    return Ratio(statistics.median(ratios), low, high, len(ratios))


def order(names: list[str], number: int, seed: int) -> list[str]:
    """The order of a round: shuffled in even rounds, and that order reversed in the odd round that follows."""
    shuffled = list(names)
    random.Random(seed * 1_000_003 + number // 2).shuffle(shuffled)
    return shuffled if number % 2 == 0 else shuffled[::-1]
