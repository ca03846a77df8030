"""What the comparisons of `known-slowdown` mean: limits, tables, sentences. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

from slowdown_inference import CERTAIN, ERROR, POWER, Share, announced_power, fisher, middle, most_false_alarms
from slowdown_tools import Comparison

TOOLS = ("slowpath", "hyperfine")
COLUMNS_OF_FOUND = (
    "*Found*: the second command slower, at 0 % any difference. *Wrong way*: the second command faster. *Announced*: power "
    "by the selftest, which was calm. *By itself*: mean power by the detectable effect that each comparison states."
)
COLUMNS_OF_ESTIMATES = (
    "hyperfine states no interval of the ratio; its column is Welch's 95 % interval of it, by the delta method."
)
Row = list[str]


@dataclass
class Case:
    """One slow-down, calm or under load, and what the tools said about it."""

    share: float
    """By how much the work is longer."""
    ratio: float
    """The true ratio of wall times."""
    loaded: bool
    is_announced: bool
    """Whether the share is the one that slowpath announces to find in 80 % of repetitions."""
    said: dict[str, list[Comparison]] = field(default_factory=lambda: {tool: [] for tool in TOOLS})

    @property
    def title(self) -> str:
        """Its name in tables."""
        announced = " (announced)" if self.is_announced else ""
        return f"{percent(self.share)}{announced}, {'rising load' if self.loaded else 'calm'}"

    def flagged(self, tool: str) -> Share:
        """Comparisons that saw what they should (or must not) see: a slow-down, where there is none a difference."""
        wanted = ("slower",) if self.share > 0 else ("slower", "faster")
        return Share(sum(one.outcome in wanted for one in self.said[tool]), len(self.said[tool]))

    def found(self, tool: str) -> list[Comparison]:
        """Comparisons that saw the second command slower."""
        return [one for one in self.said[tool] if one.outcome == "slower"]

    def covered(self, tool: str) -> Share:
        """Comparisons whose interval holds the truth."""
        ends = [(one.low, one.high) for one in self.said[tool] if one.low is not None and one.high is not None]
        return Share(sum(low <= self.ratio <= high for low, high in ends), len(ends))

    def own_power(self) -> float | None:
        """Mean power that slowpath's comparisons announced themselves, each from its own detectable effect."""
        least = [one.detectable for one in self.said["slowpath"] if one.detectable]
        if not least or self.share == 0:
            return None
        return statistics.fmean(announced_power(self.ratio - 1, one) for one in least)


@dataclass(frozen=True)
class Limit:
    """One thing the run demands, in words, and whether it was kept."""

    words: str
    is_kept: bool


def limits(cases: list[Case], detectable: float) -> Iterator[Limit]:
    """What must hold; `detectable` is the announced effect as a share of the base's time.

    Where little power is announced, anything would keep it: a machine that was not calm enough to promise the smallest
    fixed slow-down shows nothing, and that is a limit missed.
    """
    smallest = min((case for case in cases if case.share > 0 and not case.is_announced), key=lambda case: case.share)
    promised = announced_power(smallest.ratio - 1, detectable)
    words = (
        f"the machine is calm enough: announced for {percent(smallest.share)} {percent(promised)}, {percent(POWER)} at least"
    )
    yield Limit(words, promised >= POWER)
    for case in cases:
        seen = case.flagged("slowpath")
        if case.share == 0:
            most = most_false_alarms(seen.of)
            yield Limit(f"{case.title}: {seen.count} of {seen.of} flagged, {most} at most", seen.count <= most)
        else:
            # What each comparison states holds for the noise of its own launches; what the selftest announced, for that of
            # the calm moment before.
            found = f"{case.title}: {seen.count} of {seen.of} found, upper end {percent(seen.high)}"
            own = min(CERTAIN, case.own_power() or CERTAIN)
            yield Limit(f"{found}; the comparisons themselves state {percent(own)}", seen.high >= own)
            if not case.loaded:
                power = min(CERTAIN, announced_power(case.ratio - 1, detectable))
                yield Limit(f"{found}; the selftest had announced {percent(power)}", seen.high >= power)


def tables(cases: list[Case], detectable: float) -> str:
    """All comparisons as Markdown tables."""
    finds, estimates, words = [], [], []
    for case in cases:
        for tool in (tool for tool in TOOLS if case.said[tool]):
            finds.append(_finds(case, tool, detectable))
            estimates.append(_estimates(case, tool))
        if case.said["hyperfine"]:
            words.append(_own_words(case))
    parts = [
        table(["case", "tool", "comparisons", "found", "share (95 %)", "wrong way", "announced", "by itself"], finds),
        COLUMNS_OF_FOUND,
        table(
            [
                "case",
                "true ratio",
                "tool",
                "median ratio of the found",
                "of all (middle 90 %)",
                "interval holds the truth (95 %)",
            ],
            estimates,
        ),
        COLUMNS_OF_ESTIMATES,
    ]
    if words:
        head = ["case", "hyperfine's factor is more than its own ± from 1", "its ranges (min ... max) do not overlap"]
        parts.append(table(head, words))
    return "\n\n".join(parts)


def _finds(case: Case, tool: str, detectable: float) -> Row:
    seen = case.flagged(tool)
    wrong = sum(one.outcome == "faster" for one in case.said[tool])
    announced = own = "-"
    if case.share > 0 and tool == "slowpath":
        power = case.own_power()
        announced = "-" if case.loaded else percent(announced_power(case.ratio - 1, detectable))
        own = "-" if power is None else percent(power)
    return [case.title, tool, str(seen.of), str(seen.count), with_ends(seen), str(wrong), announced, own]


def _estimates(case: Case, tool: str) -> Row:
    found = [one.ratio for one in case.found(tool)]
    every = [one.ratio for one in case.said[tool]]
    low, high = middle(every)
    median = f"{statistics.median(found):.4f}" if found else "-"
    spread = f"{statistics.median(every):.4f} ({low:.4f} to {high:.4f})"
    return [case.title, f"{case.ratio:.4f}", tool, median, spread, with_ends(case.covered(tool))]


def _own_words(case: Case) -> Row:
    said = case.said["hyperfine"]
    beyond = Share(sum(one.beyond_own_error for one in said), len(said))
    apart = Share(sum(one.ranges_apart for one in said), len(said))
    return [case.title, with_ends(beyond), with_ends(apart)]


def sentences(cases: list[Case]) -> Iterator[str]:
    """What the tables mean."""
    for case in cases:
        for tool in (tool for tool in TOOLS if case.said[tool]):
            yield f"- {case.title}, {tool}: {'; '.join(_honesty(case, tool))}."
    for case in cases:
        if case.said["hyperfine"]:
            yield f"- {case.title}: {_beside(case, cases)}."


def _honesty(case: Case, tool: str) -> Iterator[str]:
    """Is the estimate right, and its interval?"""
    found = case.found(tool)
    if found and case.share > 0:
        off = statistics.median(one.ratio for one in found) - case.ratio
        yield f"the median estimate of those found is off by {off * 100:+.2f} points of {(case.ratio - 1) * 100:.2f}"
    covered = case.covered(tool)
    if covered.of == 0:
        yield "no interval was stated"
        return
    is_less = covered.high < 1 - ERROR
    yield f"intervals hold the truth in {percent(covered.value)}, " + (
        "significantly less than 95 %" if is_less else "95 % is possible"
    )
    own = case.own_power() if tool == "slowpath" else None
    if own is not None:
        seen = case.flagged(tool)
        is_short = seen.high < min(CERTAIN, own)
        yield f"found {percent(seen.value)} where the comparisons themselves announce {percent(own)}: " + (
            "significantly less" if is_short else "not significantly less"
        )


def _beside(case: Case, cases: list[Case]) -> str:
    """slowpath and hyperfine on the same case."""
    ours, theirs = (case.flagged(tool) for tool in TOOLS)
    p = fisher(ours, theirs)
    what = "found" if case.share > 0 else "flagged, of nothing,"
    said = f"slowpath {what} {ours.count} of {ours.of}, hyperfine {theirs.count} of {theirs.of} (Fisher's p = {p:.2g})"
    if case.share == 0:
        better = "slowpath" if ours.value < theirs.value else "hyperfine"
        return said + (f": {better} raises fewer false alarms" if p < ERROR else ": not to be told apart")
    for tool in TOOLS:
        nothing = next((one.flagged(tool) for one in cases if one.share == 0 and one.loaded == case.loaded), None)
        if nothing is not None and nothing.count > most_false_alarms(nothing.of):
            said += f"; what {tool} finds is no evidence, it flags {percent(nothing.value)} where nothing is"
    if "no evidence" in said:
        return said
    better = "slowpath" if ours.value > theirs.value else "hyperfine"
    return said + (f": {better} finds more" if p < ERROR else ": not to be told apart")


def table(head: Row, rows: list[Row]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(share: float) -> str:
    """A share in percent: two digits of small ones, and never 100 or 0 that is not."""
    value = share * 100
    if value == round(value):
        return f"{value:.0f} %"
    if value < 2:
        return f"{value:.2f} %"
    return "> 99.9 %" if value > 99.95 else f"{value:.1f} %"


def with_ends(share: Share) -> str:
    """A share with its interval."""
    if share.of == 0:
        return "-"
    return f"{percent(share.value)} ({percent(share.low)} to {percent(share.high)})"
