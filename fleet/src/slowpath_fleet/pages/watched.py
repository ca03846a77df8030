"""Parts of a page for `watch`: changes, and a picture of every series."""

from __future__ import annotations

from html import escape

from ..printed import Change, Series, WatchResult
from ..text_table import measured, number, probability, relative
from .page import Cell, heading, paragraph, table
from .quantile_picture import COLOURS
from .results import remarks

WIDTH, HEIGHT, LEFT, BOTTOM = 760, 150, 70, 24
# Pictures of a page.
MOST_PICTURES = 40


def watch_parts(result: WatchResult) -> list[str]:
    """Changes, then series."""
    parts = [paragraph(f"{result.metric} from {result.since} to {result.until}.")]
    if result.changes:
        head = ["change of", "quantile", "from", "before", "after", "relative", "q", "with version"]
        parts.append(table(head, [row(one) for one in result.changes]))
    elif result.tested:
        parts.append(paragraph(f"No change found in {result.tested:,} series."))
    for one in result.series[:MOST_PICTURES]:
        marked = [change.day for change in result.changes if change.where == one.where]
        parts += [heading(described(one.where)), picture(one, marked)]
    return parts + remarks(result.notes, result.unavailable)


def described(where: dict[str, str]) -> str:
    """Conditions of a slice."""
    return ", ".join(f"{column} = {value}" for column, value in where.items()) or "all launches"


def row(one: Change) -> list[Cell | str]:
    """A line of the changes."""
    return [
        described(one.where),
        f"p{one.quantile}",
        one.day,
        measured(one.before),
        measured(one.after),
        Cell(relative(one.relative), "bad" if one.direction == "worse" else "good"),
        probability(one.q),
        one.version or "-",
    ]


def picture(one: Series, marked: list[str]) -> str:
    """Quantiles by day with their intervals, and a line at each day of a change."""
    names = list(one.days[0].quantiles) if one.days else []
    values = [
        end
        for point in one.days
        for each in point.quantiles.values()
        for end in (each.value, each.high)
        if end is not None
    ]
    if not values or len(one.days) < 2:
        return ""
    top = max(values) or 1.0
    step = (WIDTH - LEFT - 10) / (len(one.days) - 1)

    def y(value: float) -> float:
        return HEIGHT - value / top * (HEIGHT - 16)

    marks = []
    for at, point in enumerate(one.days):
        if point.day in marked:
            x = LEFT + (at - 0.5) * step
            marks.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT}" stroke="#c62828" stroke-dasharray="4 3"/>'
            )
    for order, name in enumerate(names):
        colour = COLOURS[order % len(COLOURS)]
        line = []
        for at, point in enumerate(one.days):
            each = point.quantiles.get(name)
            if each is None or each.value is None:
                continue
            x = LEFT + at * step
            line.append(f"{x:.1f},{y(each.value):.1f}")
            if each.low is not None and each.high is not None:
                marks.append(
                    f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y(each.low):.1f}" y2="{y(each.high):.1f}" '
                    f'stroke="{colour}" stroke-opacity="0.4" stroke-width="3"/>'
                )
        marks.append(f'<polyline points="{" ".join(line)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if line:
            last = line[-1].split(",")[1]
            marks.append(f'<text x="{LEFT - 8}" y="{last}" text-anchor="end">p{escape(name)}</text>')
    unit = next(iter(one.days[0].quantiles.values())).unit
    ends = ((LEFT, "start", one.days[0].day), (WIDTH - 10, "end", one.days[-1].day))
    marks += [f'<text x="{x}" y="{HEIGHT + 18}" text-anchor="{side}">{escape(day)}</text>' for x, side, day in ends]
    marks.append(f'<text x="{LEFT}" y="12">{number(top)} {unit}</text>')
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT + BOTTOM}" width="{WIDTH}" role="img" aria-label="quantiles by day">'
    return head + "".join(marks) + "</svg>"
