"""Quantiles of several distributions on one log axis, in text: whether p50 is close and p95 is not, at a glance."""

from __future__ import annotations

import math

from .text_table import cut, number

WIDTH = 64


def plot(rows: dict[str, dict[str, float]], unit: str) -> str:
    """`rows`: name -> quantile in percent -> value. Values that are not positive are left out."""
    values = [value for row in rows.values() for value in row.values() if value > 0]
    if not values:
        return ""
    low, high = math.log(min(values)), math.log(max(values))
    span = max(high - low, math.log(1.1))
    label = max(len(cut(name)) for name in rows)

    def at(value: float) -> int:
        return round((math.log(value) - low) / span * (WIDTH - 1))

    lines = []
    for name, row in rows.items():
        places = {key: at(value) for key, value in row.items() if value > 0}
        if not places:
            continue
        line = [" "] * (WIDTH + 8)
        for column in range(min(places.values()), max(places.values()) + 1):
            line[column] = "─"
        # The largest quantile is drawn last, where two fall on one place.
        for key, column in sorted(places.items(), key=lambda item: float(item[0])):
            line[column : column + len(key)] = list(key)
        lines.append(f"{cut(name).ljust(label)}  {''.join(line).rstrip()}")
    middle = math.exp(low + span / 2)
    axis = f"{number(math.exp(low))} {unit}".ljust(WIDTH // 2) + f"{number(middle)}".ljust(WIDTH // 2 - 4)
    lines.append(f"{''.ljust(label)}  {axis}{number(math.exp(low + span))} {unit} (log scale, numbers are quantiles)")
    return "\n".join(lines)
