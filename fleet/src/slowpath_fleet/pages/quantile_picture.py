"""The quantile plot as SVG: a line for each value on one log axis, a mark for each quantile with its interval."""

from __future__ import annotations

import math
from html import escape

from ..printed import Quantity
from ..text_table import number

WIDTH, ROW, LEFT = 900, 34, 180
COLOURS = ("#4269d0", "#e0731a", "#3ca951", "#a463f2", "#c2373a", "#6cc5b0", "#9c6b4e", "#97bbf5")


def picture(rows: dict[str, dict[str, Quantity]]) -> str:
    """`rows`: name -> quantile in percent -> quantity."""
    ends = [
        end
        for row in rows.values()
        for one in row.values()
        for end in (one.value, one.low, one.high)
        if end and end > 0
    ]
    if not ends:
        return ""
    low, high = math.log(min(ends)), math.log(max(ends))
    span = max(high - low, math.log(1.1))

    def x(value: float) -> float:
        return LEFT + (math.log(max(value, min(ends))) - low) / span * (WIDTH - LEFT - 40)

    marks = []
    for at, (name, row) in enumerate(rows.items()):
        y, colour = 30 + at * ROW, COLOURS[at % len(COLOURS)]
        label = name if len(name) <= 24 else name[:23] + "…"
        marks.append(f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(label)}</text>')
        for quantile, one in row.items():
            if not one.value or one.value <= 0:
                continue
            if one.low and one.high:
                marks.append(
                    f'<line x1="{x(one.low):.1f}" x2="{x(one.high):.1f}" y1="{y}" y2="{y}" '
                    f'stroke="{colour}" stroke-width="3"/>'
                )
            marks.append(f'<circle cx="{x(one.value):.1f}" cy="{y}" r="4.5" fill="{colour}"/>')
            marks.append(f'<text x="{x(one.value):.1f}" y="{y - 9}" text-anchor="middle">p{escape(quantile)}</text>')
    bottom = 30 + len(rows) * ROW
    unit = next(one.unit for row in rows.values() for one in row.values())
    for step in range(5):
        value = math.exp(low + span * step / 4)
        marks.append(f'<text x="{x(value):.1f}" y="{bottom}" text-anchor="middle">{number(value)} {unit}</text>')
    head = f'<svg viewBox="0 0 {WIDTH} {bottom + 12}" width="{WIDTH}" role="img" aria-label="quantiles">'
    return head + "".join(marks) + "</svg>"
