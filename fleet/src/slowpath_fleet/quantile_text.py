"""Quantiles as users write them: percent, `50,75,99.9`."""

from __future__ import annotations

from .errors import wrong_usage


def parse(text: str) -> list[tuple[str, float]]:
    """(name in percent, share) for each, without repetitions."""
    found: dict[str, float] = {}
    for word in text.split(","):
        cleaned = word.strip().removeprefix("p").removesuffix("%")
        try:
            value = float(cleaned)
        except ValueError:
            value = -1.0
        if not 0 < value < 100:
            raise wrong_usage("cannot use the quantile", word, "it is no number between 0 and 100", "write 50,95,99.9")
        found[f"{value:g}"] = value / 100
    return list(found.items())
