"""What was measured: samples by recorder and round, the limits they are held against, and how both are printed."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from argparse import Namespace
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from intervals import Ratio, ratio_of
from recorders import Recorder, Slowpath
from workloads import Sample

RATIO_LIMIT = {"faults": 1.25, "chromium": 1.03}
AGREEMENT_LIMIT = 0.001


@dataclass
class Check:
    """A limit and whether it was kept."""

    what: str
    measured: str
    met: bool


@dataclass
class Result:
    """All samples of one workload."""

    name: str
    title: str
    unit: str
    recorders: list[str]
    titles: dict[str, str]
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
        ratios = {name: self.ratio(name) for name in self.recorders[1:]}
        return ", ".join(f"{name} {ratio.value:.3f}" for name, ratio in ratios.items() if ratio)

    def checks(self) -> list[Check]:
        """The limits that hold for slowpath."""
        checks = []
        for name in self.recorders:
            if not self.titles[name].endswith(" record") or not self.every(name):
                continue
            ratio, limit = self.ratio(name), RATIO_LIMIT[self.name]
            if ratio:
                side = "" if ratio.high <= limit or ratio.low > limit else "; the interval holds the limit"
                checks.append(Check(f"{name}, {self.name}: ratio at most {limit}", f"{ratio_text(ratio)}{side}", ratio.value <= limit))
            checks.append(Check(f"{name}, {self.name}: no event lost", str(self.lost(name)), self.lost(name) == 0))
            checks.append(Check(f"{name}, {self.name}: no run failed", str(self.failed[name]), self.failed[name] == 0))
            if (share := self.disagreement(name)) is not None:
                text = f"{share * 100:.3f} %"
                checks.append(Check(f"{name}, {self.name}: faults agree with the kernel to 0.1 %", text, share <= AGREEMENT_LIMIT))
        return checks


def ratio_text(ratio: Ratio) -> str:
    """A ratio with its interval."""
    return f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


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


def machine(options: Namespace, chosen: list[Recorder], rounds: int) -> dict[str, str]:
    """What the measurement depends on."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(": ")[2] for line in cpuinfo if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    binaries = [one for one in chosen if isinstance(one, Slowpath)]
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
        "commit": commit(),
        **{one.name: first_line([str(one.binary), "--version"]) for one in binaries},
        "kernel": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "processors": f"{os.cpu_count()}, {model}",
        "memory": f"{memory:.1f} GiB",
        "versions": ", ".join(first_line(words) for words in (["perf", "--version"], ["bpftrace", "--version"], ["chromium", "--version"])),
        "recorders write to": f"{options.scratch} ({storage(options.scratch)})",
        "profiles of Chromium": f"{options.profiles} ({storage(options.profiles)})",
        "rounds": f"{rounds}, seed {options.seed}",
        "load before": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def markdown(header: dict[str, str], results: list[Result]) -> str:
    """The result as Markdown."""
    lines = [f"- {key}: {value}" for key, value in header.items()]
    for result in results:
        lines += ["", f"## {result.title}", ""]
        lines += [f"| recorder | median {result.unit} | fastest {result.unit} | ratio (95 %) | ratio of CPU time (95 %) | runs | failed | events lost | largest disagreement with the kernel |"]
        lines += ["|---|---|---|---|---|---|---|---|---|"]
        for name in result.recorders:
            ratio, cpu, share = result.ratio(name), result.cpu_ratio(name), result.disagreement(name)
            cells = [
                result.titles[name],
                *("-" if number is None else f"{number:.0f}" for number in (result.median(name), result.fastest(name))),
                "1" if name == "none" else ratio_text(ratio) if ratio else "-",
                "1" if name == "none" and cpu else ratio_text(cpu) if cpu else "-",
                str(len(result.every(name))),
                str(result.failed[name]),
                "-" if name == "none" else str(result.lost(name)),
                "-" if share is None else f"{share * 100:.3f} %",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "## Limits", ""]
    for check in (check for result in results for check in result.checks()):
        lines.append(f"- {'met' if check.met else '**missed**'}: {check.what}: {check.measured}")
    lines += [
        "",
        "Ratios are medians over rounds of a round's median by the same round's base, with a percentile bootstrap interval.",
        "A fault's cost is CPU time of the faulting process. A launch is timed from its exec to the call of the page's script.",
        "The ratio of CPU time is that of the launched tree until the call, without the recorder's own processes.",
        "Faults that bpftrace counted are those of the whole machine, so they are not compared.",
    ]
    return "\n".join(lines)


def to_json(header: dict[str, str], results: list[Result]) -> str:
    """The result with every sample."""
    workloads: dict[str, Any] = {}
    for result in results:
        workloads[result.name] = {
            "unit": result.unit,
            "checks": [asdict(check) for check in result.checks()],
            "recorders": {
                name: {
                    "title": result.titles[name],
                    "median": result.median(name),
                    "fastest": result.fastest(name),
                    "ratio": asdict(ratio) if (ratio := result.ratio(name)) else None,
                    "cpu_ratio": asdict(cpu) if (cpu := result.cpu_ratio(name)) else None,
                    "failed": result.failed[name],
                    "lost": result.lost(name),
                    "disagreement": result.disagreement(name),
                    "rounds": {number: [asdict(one) for one in samples] for number, samples in result.samples[name].items()},
                }
                for name in result.recorders
            },
        }
    return json.dumps({"schema": "slowpath-bench-record-cost/1", "machine": header, "workloads": workloads}, indent=1)
