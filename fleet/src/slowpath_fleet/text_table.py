"""Tables and numbers for a terminal."""

from __future__ import annotations

from collections.abc import Callable

from .printed import Quantity

# Digits that are shown of a number.
DIGITS = 3
LONGEST = 40


def cut(text: str) -> str:
    """Text as long as a column may be. It is escaped already: see `Outcome`."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def printable(text: str) -> str:
    """Text whose control and format characters, line ends too, are written as escapes."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def number(value: float | None) -> str:
    """A number with three digits that count, and at least all before the point."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 100 or value == 0:
        return f"{value:,.0f}"
    decimals = DIGITS - 1 if size >= 1 else DIGITS
    decimals = 1 if size >= 10 else decimals
    return f"{value:.{decimals}f}"


def with_interval(one: Quantity, shown: Callable[[float], str], unit: str) -> str:
    """A value with its interval and unit."""
    if one.value is None:
        return "-"
    if one.low is None or one.high is None:
        return f"{shown(one.value)}{unit}"
    return f"{shown(one.value)}{unit} ({shown(one.low)}..{shown(one.high)})"


def measured(one: Quantity) -> str:
    """A level: `632 ms (621..645)`; of shares `63.4% (61.5..65.4)`."""
    if one.unit == "ratio":
        return with_interval(one, lambda value: f"{value * 100:.1f}", "%")
    return with_interval(one, number, f" {one.unit}")


def difference(one: Quantity) -> str:
    """A difference of two levels: `-193 ms (-240..-146)`; of shares in percentage points, `-1.7 pp (-4.5..+1.2)`."""
    if one.unit == "ratio":
        return with_interval(one, lambda value: f"{value * 100:+.1f}", " pp")
    return with_interval(one, number, f" {one.unit}")


def relative(one: Quantity) -> str:
    """A change, or a part, as a share of something: `-2.6% (-6.9..+1.9)`."""
    return with_interval(one, lambda value: f"{value * 100:+.1f}", "%")


def probability(p: float | None) -> str:
    """A p-value."""
    if p is None:
        return "-"
    return f"{p:.1e}" if p < 0.001 else f"{p:.3f}"


def table(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    """Columns side by side; the first `left` are text and stand left, others right."""
    cells = [[cut(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines)
