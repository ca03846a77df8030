"""Tables and numbers for a terminal. Text from data is escaped: nothing of it can move the cursor or set a colour."""

from __future__ import annotations

import unicodedata

from .printed import Quantity

# Digits that are shown of a number.
DIGITS = 3
LONGEST = 40


def plain(text: str) -> str:
    """Text without control and format characters, which are written as escapes."""
    shown = "".join(
        repr(one)[1:-1] if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") else one
        for one in text
    )
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def printable(text: str) -> str:
    """The same without cutting it, for sentences; line ends stay out too."""
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


def measured(one: Quantity) -> str:
    """A value with its interval and unit: `632 ms (621..645)`."""
    scale, unit, sign = (100.0, "%", "+") if one.unit == "ratio" else (1.0, f" {one.unit}", "")
    if one.value is None:
        return "-"
    text = f"{one.value * scale:{sign}.1f}" if sign else number(one.value)
    if one.low is None or one.high is None:
        return f"{text}{unit}"
    if sign:
        return f"{text}{unit} ({one.low * scale:+.1f}..{one.high * scale:+.1f})"
    return f"{text}{unit} ({number(one.low)}..{number(one.high)})"


def probability(p: float | None) -> str:
    """A p-value."""
    if p is None:
        return "-"
    return f"{p:.1e}" if p < 0.001 else f"{p:.3f}"


def table(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    """Columns side by side; the first `left` are text and stand left, others right."""
    cells = [[plain(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines)
