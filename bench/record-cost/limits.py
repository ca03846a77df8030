"""The limits, all of them; which way of recording (recorders.slowpaths) they hold for is the first word of each."""

from __future__ import annotations

from dataclasses import dataclass

from recorders import DEFAULT

RATIO_LIMIT: dict[str, dict[str, float]] = {
    "faults": {DEFAULT: 1.25, "stacks": 1.35},
    "faults-deep": {},
    "chromium": {DEFAULT: 1.03},
    "sampling": {},
    "neighbour-calls": {DEFAULT: 1.02, "stacks-cpu": 1.02},
    "neighbour-mappings": {DEFAULT: 1.02, "stacks-cpu": 1.02},
    "neighbour-pipe": {DEFAULT: 1.02, "stacks-cpu": 1.02},
}
"""By workload and variant: at most so many times the base."""

ABOVE_LIMIT: dict[str, dict[str, tuple[str, float]]] = {"sampling": {"cpu": ("bare", 0.005)}}
"""By workload and variant: another recorder, and by how much of the base it may cost more than that one."""

BEFORE_LIMIT = {"faults": 1.02, "faults-deep": 1.02}
"""By workload: at most so many times what the version before takes, where two versions are compared (the first one given is it)."""

AGREEMENT_LIMIT = 0.001
"""Share by which recorded faults may differ from the kernel's per-task counters."""

WHOLE_LIMIT = 0.99
"""Share of the faults whose stacks reach from the loop to main and are not cut off."""


@dataclass
class Check:
    """A limit and whether it was kept."""

    what: str
    measured: str
    met: bool
    """The whole interval lies on the limit's side."""
    undecided: bool = False
    """The interval lies on both sides of the limit."""

    @property
    def verdict(self) -> str:
        """In a word."""
        return "met" if self.met else "not shown" if self.undecided else "**missed**"
