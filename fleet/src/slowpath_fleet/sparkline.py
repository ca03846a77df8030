"""A series as a line of text."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

LEVELS = "▁▂▃▄▅▆▇█"
# Steps of a line: no longer than a column of a table may be.
LONGEST = 40


def sparkline(values: Sequence[float | None]) -> str:
    """From the smallest to the largest value; a blank where there is none; the last `LONGEST` of them."""
    latest = values[-LONGEST:]
    known = [one for one in latest if one is not None]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known)
    return "".join(
        " " if one is None else LEVELS[min(7, int((one - low) / span * 8)) if span > 0 else 0] for one in latest
    )


def by_day(values: dict[str, float | None], since: str, until: str) -> list[float | None]:
    """Values of all days from the first to the last, None where a day has none. Days are ISO dates."""
    first, last = datetime.date.fromisoformat(since), datetime.date.fromisoformat(until)
    days = (first + datetime.timedelta(days=number) for number in range((last - first).days + 1))
    return [values.get(day.isoformat()) for day in days]
