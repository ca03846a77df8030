"""Processes around a recorder: who descends from whom, and the CPU time of each, from /proc and the kernel's clocks."""

from __future__ import annotations

import os
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def stat_of(pid: int) -> tuple[str, list[str]] | None:
    """Name and the fields after it of /proc/PID/stat (the first is the state, field 3 of proc(5)); none for no process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()


def children_of() -> dict[int, list[int]]:
    """Children of all processes."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and (stat := stat_of(int(entry))):
            children.setdefault(int(stat[1][1]), []).append(int(entry))
    return children


def descendants(pid: int, without: str = "") -> list[int]:
    """A process and all that descend from it, except processes of a name and what descends from those."""
    children = children_of()
    found: list[int] = []
    open_ones = [pid]
    while open_ones:
        one = open_ones.pop()
        stat = stat_of(one)
        if stat and (not without or stat[0] != without):
            found.append(one)
            open_ones += children.get(one, [])
    return found


def named(pid: int, name: str) -> int | None:
    """A descendant of a process with this name."""
    return next((one for one in descendants(pid) if (stat := stat_of(one)) and stat[0] == name), None)


def cpu_ns(pid: int) -> int:
    """CPU time that a process used, and its children that ended (those in clock ticks); 0 when it is gone."""
    try:
        # The clock of another process, as clock_getcpuclockid(3) makes it.
        own = time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return 0
    stat = stat_of(pid)
    ended = int(stat[1][13]) + int(stat[1][14]) if stat else 0
    return own + ended * 1_000_000_000 // TICKS


def cpu_of_others(pid: int, target: str) -> dict[int, int]:
    """CPU time by pid of a recorder and its processes, without its target and what descends from that."""
    return {one: cpu_ns(one) for one in descendants(pid, without=target)}


def used_between(before: dict[int, int], after: dict[int, int]) -> int:
    """ns of CPU used between two looks; processes that began in between count from their begin."""
    return sum(max(0, used - before.get(pid, 0)) for pid, used in after.items())
