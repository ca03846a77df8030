"""What was measured: samples by recorder and round, the limits they are held against, and how both are printed."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
from argparse import Namespace
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from intervals import Ratio, above_of, ratio_of
from limits import ABOVE_LIMIT, AGREEMENT_LIMIT, BEFORE_LIMIT, RATIO_LIMIT, WHOLE_LIMIT, Check
from losses import LossRun, loss_checks, loss_table
from recorders import Recorder, Slowpath
from workloads import Part, Sample


@dataclass
class Result:
    """All samples of one part of a workload."""

    part: Part
    recorders: dict[str, Recorder]
    samples: dict[str, dict[int, list[Sample]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    failed: Counter[str] = field(default_factory=Counter)

    def add(self, recorder: str, number: int, sample: Sample) -> None:
        """Takes a sample of a round."""
        self.samples[recorder][number].append(sample)

    def values(self, recorder: str) -> dict[int, list[float]]:
        """Values by round."""
        return {number: [one.value for one in samples] for number, samples in self.samples[recorder].items()}

    def every(self, recorder: str) -> list[Sample]:
        """All samples of a recorder."""
        return [sample for samples in self.samples[recorder].values() for sample in samples]

    def median(self, recorder: str) -> float | None:
        """Median of all samples."""
        values = [sample.value for sample in self.every(recorder)]
        return statistics.median(values) if values else None

    def fastest(self, recorder: str) -> float | None:
        """Fastest repetition of all samples."""
        return min((sample.fastest for sample in self.every(recorder)), default=None)

    def ratio(self, recorder: str) -> Ratio | None:
        """Ratio to the base, paired by round."""
        return ratio_of(self.values(recorder), self.values("none"))

    def cpu_ratio(self, recorder: str) -> Ratio | None:
        """Ratio of the tree's CPU time to that of the base, paired by round."""
        def values(name: str) -> dict[int, list[float]]:
            return {number: [one.cpu for one in runs if one.cpu is not None] for number, runs in self.samples[name].items()}

        return ratio_of(values(recorder), values("none"))

    def lost(self, recorder: str) -> int:
        """Events lost in all runs, as the recorder says."""
        return sum(sample.seen.lost for sample in self.every(recorder) if sample.seen)

    def disagreement(self, recorder: str) -> float | None:
        """Largest distance of the recorded faults from either bound of the kernel's count, as a share of it."""
        shares = [
            max(abs(sample.seen.faults - bound) for bound in sample.counted) / sample.counted[0]
            for sample in self.every(recorder)
            if sample.seen and sample.seen.faults is not None and sample.counted
        ]
        return max(shares, default=None)

    def line(self) -> str:
        """Ratios so far, for the progress."""
        ratios = {name: self.ratio(name) for name in self.recorders if name != "none"}
        return ", ".join(f"{name} {ratio.value:.3f}" for name, ratio in ratios.items() if ratio)

    def above(self, recorder: str, other: str) -> Ratio | None:
        """How much more a recorder costs than another, as a difference of ratios to the base, paired by round."""
        return above_of(self.values(recorder), self.values(other), self.values("none"))

    def whole(self, recorder: str) -> float | None:
        """Smallest share of whole stacks of any run."""
        return min((sample.whole for sample in self.every(recorder) if sample.whole is not None), default=None)

    def further(self, recorder: str) -> dict[str, float]:
        """Medians of what else was measured."""
        values: dict[str, list[float]] = {}
        for sample in self.every(recorder):
            for what, value in sample.further.items():
                values.setdefault(what, []).append(value)
        return {what: statistics.median(found) for what, found in values.items()}

    def checks(self) -> list[Check]:
        """The limits that hold for slowpath's ways to record."""
        ours = [check for one in self.recorders.values() if one.variant for check in self.checks_of(one.name, one.variant)]
        return [*ours, *self.checks_of_versions()]

    def checks_of_versions(self) -> list[Check]:
        """Those of a version beside the one before, way by way."""
        limit = BEFORE_LIMIT.get(self.part.name)
        by_variant: dict[str, list[str]] = {}
        for one in self.recorders.values():
            if one.variant:
                by_variant.setdefault(one.variant, []).append(one.name)
        return [
            limit_check(f"{name}, {self.part.name}: at most {limit} of {before}", ratio_of(self.values(name), self.values(before)), limit)
            for before, *later in by_variant.values()
            for name in later
            if limit
        ]

    def checks_of(self, name: str, variant: str) -> list[Check]:
        """Those of one recorder."""
        what, checks = f"{name}, {self.part.name}", []
        if limit := RATIO_LIMIT[self.part.name].get(variant):
            checks.append(limit_check(f"{what}: ratio at most {limit}", self.ratio(name), limit))
        if above := ABOVE_LIMIT.get(self.part.name, {}).get(variant):
            other, limit = above
            title = f"{what}: at most {limit * 100:.1f} % of the base more than {other}"
            checks.append(limit_check(title, self.above(name, other), limit))
        checks.append(Check(f"{what}: no event lost", str(self.lost(name)), self.lost(name) == 0))
        checks.append(Check(f"{what}: no run failed", str(self.failed[name]), self.failed[name] == 0))
        if (share := self.disagreement(name)) is not None:
            text = f"{share * 100:.3f} %"
            checks.append(Check(f"{what}: faults agree with the kernel to {AGREEMENT_LIMIT * 100:.1f} %", text, share <= AGREEMENT_LIMIT))
        if (share := self.whole(name)) is not None:
            checks.append(Check(f"{what}: whole stacks, at least {WHOLE_LIMIT * 100:.0f} %", f"{share * 100:.3f} %", share >= WHOLE_LIMIT))
        return checks


def limit_check(what: str, ratio: Ratio | None, limit: float) -> Check:
    """A limit of a ratio or a difference; what could not be measured has not kept it."""
    if ratio is None:
        return Check(what, "not measured", False)
    return Check(what, ratio_text(ratio), met=ratio.high <= limit, undecided=ratio.low <= limit < ratio.high)


def ratio_text(ratio: Ratio) -> str:
    """A ratio with its interval."""
    return f"{ratio.value:.4f} ({ratio.low:.4f} to {ratio.high:.4f})"


def commit() -> str:
    """The version of this repository."""
    done = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def first_line(command: list[str]) -> str:
    """First line that a command prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "absent"
    return (done.stdout or done.stderr).strip().partition("\n")[0]


def storage(directory: Path) -> str:
    """File system of a directory."""
    return first_line(["findmnt", "-n", "-o", "FSTYPE", "-T", str(directory)])


def machine(options: Namespace, chosen: list[Recorder]) -> dict[str, str]:
    """What the measurement depends on."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(": ")[2] for line in cpuinfo if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    binaries = {one.binary: one.name for one in reversed(chosen) if isinstance(one, Slowpath)}
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
        "commit": commit(),
        "command": " ".join(["bench/record-cost/run", *sys.argv[1:]]),
        **{name: first_line([str(binary), "--version"]) for binary, name in binaries.items()},
        "kernel": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "processors": f"{os.cpu_count()}, {model}",
        "memory": f"{memory:.1f} GiB",
        "versions": ", ".join(first_line(words) for words in (["perf", "--version"], ["bpftrace", "--version"], ["chromium", "--version"])),
        "recorders write to": f"{options.scratch} ({storage(options.scratch)})",
        "profiles of Chromium": f"{options.profiles} ({storage(options.profiles)})",
        "rounds": f"at most {2 if options.quick else options.rounds}, seed {options.seed}",
        "load before": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def markdown(header: dict[str, str], results: list[Result], losses: list[LossRun]) -> str:
    """The result as Markdown."""
    lines = [f"- {key}: {value}" for key, value in header.items()]
    for result in results:
        lines += ["", f"## {result.part.title}", "", *table(result)]
    if losses:
        lines += ["", "## Faults as fast as a processor takes them", "", *loss_table(losses)]
    lines += ["", "## Limits", ""]
    lines += [f"- {check.verdict}: {check.what}: {check.measured}" for check in all_checks(results, losses)]
    return "\n".join([*lines, "", *NOTES])


def all_checks(results: list[Result], losses: list[LossRun]) -> list[Check]:
    """All limits."""
    return [*(check for result in results for check in result.checks()), *loss_checks(losses)]


def table(result: Result) -> list[str]:
    """A result's table; a column in which nobody has anything is left out."""
    unit = result.part.unit
    rows = [row(result, name) for name in result.recorders]
    heads = ["recorder", f"median {unit}", f"fastest {unit}"]
    heads += [head for head in dict.fromkeys(head for cells in rows for head in cells) if head not in heads]
    heads = [head for head in heads if any(cells.get(head, "-") != "-" for cells in rows)]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return lines + [f"| {' | '.join(cells.get(head, '-') for head in heads)} |" for cells in rows]


def row(result: Result, name: str) -> dict[str, str]:
    """What a result says of a recorder, by the head of the column."""
    ratio, cpu, unit = result.ratio(name), result.cpu_ratio(name), result.part.unit
    share, whole = result.disagreement(name), result.whole(name)
    base = name == "none"
    return {
        "recorder": result.recorders[name].title,
        f"median {unit}": "-" if (median := result.median(name)) is None else f"{median:.0f}",
        f"fastest {unit}": "-" if (fastest := result.fastest(name)) is None else f"{fastest:.0f}",
        "ratio (95 %)": "1" if base else ratio_text(ratio) if ratio else "-",
        "ratio of the program's CPU time (95 %)": "-" if not cpu else "1" if base else ratio_text(cpu),
        **{what: f"{value:.1f}" for what, value in result.further(name).items()},
        "runs": str(len(result.every(name))),
        "failed": str(result.failed[name]),
        "events lost": "-" if base else str(result.lost(name)),
        "largest disagreement with the kernel": "-" if share is None else f"{share * 100:.3f} %",
        "whole stacks": "-" if whole is None else f"{whole * 100:.3f} %",
    }


NOTES = [
    "Ratios are medians over rounds of a round's median by the same round's base, with a percentile bootstrap interval.",
    "A fault's cost is CPU time of the faulting process. A launch is timed from its exec to the call of the page's script.",
    "The ratio of the program's CPU time at a launch is that of the launched tree until the call.",
    "Sampled work is CPU time of the program and, while it works, of the recorder's own processes; what they use before and",
    "after is not in it. Real time and the recorder's own CPU time are medians.",
    "A neighbour's cost is real time; it and the process that is recorded have nothing to do with each other. slowpath records",
    "that process with --pid; --files, --off-cpu and --memory-calls are shown for their price and have no limit.",
    "A stack is whole when it is not cut off and has main and every function between main and the loop. The programs have no",
    "frame pointers, like most that distributions build: stacks of perf -g and bpftrace end where the first one is missing.",
    "Faults that bpftrace counted are those of the whole machine, so they are not compared. What perf record lost is what the",
    "kernel counted besides its samples, when it says that it lost any.",
]


def to_json(header: dict[str, str], results: list[Result], losses: list[LossRun]) -> str:
    """The result with every sample."""
    workloads: dict[str, Any] = {}
    for result in results:
        workloads[result.part.name] = {
            "unit": result.part.unit,
            "checks": [asdict(check) for check in result.checks()],
            "recorders": {
                name: {
                    "title": recorder.title,
                    "median": result.median(name),
                    "fastest": result.fastest(name),
                    "ratio": asdict(ratio) if (ratio := result.ratio(name)) else None,
                    "cpu_ratio": asdict(cpu) if (cpu := result.cpu_ratio(name)) else None,
                    "failed": result.failed[name],
                    "lost": result.lost(name),
                    "disagreement": result.disagreement(name),
                    "whole": result.whole(name),
                    "rounds": {number: [asdict(one) for one in samples] for number, samples in result.samples[name].items()},
                }
                for name, recorder in result.recorders.items()
            },
        }
    at_rate = {"checks": [asdict(check) for check in loss_checks(losses)], "runs": [asdict(run) for run in losses]}
    return json.dumps({"schema": "slowpath-bench-record-cost/2", "machine": header, "workloads": workloads, "losses": at_rate}, indent=1)
