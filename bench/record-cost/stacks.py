"""Whether recorded call stacks are whole, from their collapsed form (docs/export.md). Pure."""

from __future__ import annotations

from collections.abc import Iterable

MAIN = "main"
DEEPER = "deeper"
"""The function of faults.c that calls itself as often as it was asked to."""
CUT_OFF = ("[truncated: ", "[unknown]", "[no stack]")


def is_whole(frames: list[str], depth: int) -> bool:
    """Whether a stack, outermost frame first, is not cut off and has main and all frames below it."""
    if any(frame.startswith(CUT_OFF) for frame in frames) or MAIN not in frames:
        return False
    return frames[frames.index(MAIN):].count(DEEPER) == depth


def whole_share(lines: Iterable[str], depth: int) -> float | None:
    """Share of what the lines count that is in whole stacks; none where there is nothing."""
    whole = every = 0
    for line in lines:
        stack, _, number = line.rpartition(" ")
        every += int(number)
        whole += int(number) if is_whole(stack.split(";"), depth) else 0
    return whole / every if every else None
