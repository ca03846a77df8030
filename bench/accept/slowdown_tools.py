"""What `known-slowdown` runs: the calibrated target, the load that rises, and one comparison by slowpath or by hyperfine.

Owns every process that is started: all end with this one, however it ends. Says nothing about what the figures mean.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import slowdown_inference as inference

SLOWPATH = os.environ.get("SLOWPATH", "target/release/slowpath")
BASE_MS = 10.0
BUSY_PERCENT = 80
"""What the load takes of each processor in the end: 1.6 of 2."""
CALIBRATIONS = 60
"""Launches of each kind from which the work and the start are determined."""
TIMES_FASTER = re.compile(r"([\d.]+) ± ([\d.]+) times faster")
PATIENCE_S = 120
"""No comparison takes so long."""


@dataclass(frozen=True)
class Comparison:
    """What one comparison said about the slower command."""

    outcome: str
    """`slower`, `faster`, or nothing seen."""
    ratio: float
    low: float | None
    """Ends of the 95 % interval of the ratio."""
    high: float | None
    took_s: float
    detectable: float | None = None
    """slowpath: the effect it says to find in 80 % of repetitions, as a share of the base."""
    beyond_own_error: bool = False
    """hyperfine: the factor it printed differs from 1 by more than the error printed with it."""
    ranges_apart: bool = False
    """hyperfine: all launches of one command took longer than any of the other."""


@dataclass(frozen=True)
class Target:
    """The calibrated target."""

    program: Path
    units: int
    """Units of the base."""
    start_ms: float
    """Median wall time of a launch without work."""
    base_ms: float
    """Median wall time of the base."""
    start_cpu_ms: float
    base_cpu_ms: float

    def work(self, share: float) -> list[str]:
        """The command whose work is longer by the share."""
        return [str(self.program), "work", str(round(self.units * (1 + share)))]

    def ratio(self, share: float) -> float:
        """The true ratio of wall times: the start is not slower, only the work."""
        return 1 + share * (1 - self.start_ms / self.base_ms)

    def cpu_ratio(self, share: float) -> float:
        """The same of processor time."""
        return 1 + share * (1 - self.start_cpu_ms / self.base_cpu_ms)


class Unavailable(Exception):
    """A tool that cannot be used: why, and what helps."""


def compiled(directory: Path) -> Path:
    """The programs of `known-slowdown.c`."""
    program = directory / "known-slowdown"
    source = Path(__file__).with_name("known-slowdown.c")
    subprocess.run(["cc", "-O2", "-Wall", "-static", "-pthread", "-o", str(program), str(source)], check=True)
    return program


def calibrated(program: Path) -> Target:
    """Finds the units of work that make a launch take 10 ms, and measures both parts of it, without slowpath."""
    probe = 50_000
    for _ in range(3):
        empty, (wall, _) = _launches(program, (0, probe))
        probe = max(1, round(probe * (BASE_MS - empty[0]) / (wall - empty[0])))
    (start_ms, start_cpu_ms), (base_ms, base_cpu_ms) = _launches(program, (0, probe))
    return Target(program, probe, start_ms, base_ms, start_cpu_ms, base_cpu_ms)


def _launches(program: Path, units: tuple[int, int]) -> list[tuple[float, float]]:
    """Medians of wall and processor time, ms, of launches with so many units, in turn."""
    times: list[list[tuple[float, float]]] = [[] for _ in units]
    for _ in range(CALIBRATIONS):
        for index, count in enumerate(units):
            began = time.monotonic()
            child = os.posix_spawn(program, [str(program), "work", str(count)], {})
            _, status, usage = os.wait4(child, 0)
            wall = time.monotonic() - began
            if status != 0:
                raise SystemExit(f"the target ended with status {status}")
            times[index].append((wall * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3))
    return [(statistics.median(w for w, _ in one), statistics.median(c for _, c in one)) for one in times]


class Tools:
    """slowpath and hyperfine on one target."""

    def __init__(self, target: Target, directory: Path, runs: int) -> None:
        """`runs` launches of each command in each comparison."""
        self.target = target
        self.runs = runs
        self._export = directory / "hyperfine.json"
        if not Path(SLOWPATH).is_file():
            raise SystemExit(f"slowpath: unavailable: no {SLOWPATH}; make build, or SLOWPATH=where it is")

    def selftest(self, comparisons: int) -> dict[str, Any]:
        """What slowpath announces here and now."""
        command = [SLOWPATH, "launch", "selftest", "--json", "--quiet", "--comparisons", str(comparisons)]
        return dict(json.loads(self._run([*command, "--blocks", str(self.runs), "--", *self.target.work(0)], PATIENCE_S * 10)))

    def slowpath(self, share: float, seed: int) -> Comparison:
        """The base against the slower one, in blocks."""
        began = time.monotonic()
        command = [SLOWPATH, "launch", "--json", "--quiet", "--blocks", str(self.runs), "--seed", str(seed)]
        said = json.loads(self._run([*command, "--vs", shlex.join(self.target.work(share)), "--", *self.target.work(0)]))
        took = time.monotonic() - began
        (compared,) = said["comparisons"]
        least = compared["minimum_detectable_effect"]
        ratio = compared["ratio"]
        return Comparison(
            outcome={"hurts": "slower", "helps": "faster"}.get(compared["outcome"], ""),
            ratio=ratio["value"],
            low=ratio["low"],
            high=ratio["high"],
            took_s=took,
            detectable=least["value"] / said["arms"][0]["medians"]["wall"]["value"] if least else None,
        )

    def hyperfine(self, share: float) -> Comparison:
        """The base, and after it the slower one, as hyperfine does it; Welch's test on what it exports."""
        began = time.monotonic()
        base, slow = (shlex.join(self.target.work(one)) for one in (0, share))
        # slowpath launches each command once before it counts; so does hyperfine here.
        command = ["hyperfine", "-N", "--warmup", "1", "--runs", str(self.runs), "--export-json", str(self._export)]
        printed = self._run([*command, base, slow])
        took = time.monotonic() - began
        times = [result["times"] for result in json.loads(self._export.read_text())["results"]]
        found = inference.welch(*times)
        factor = TIMES_FASTER.search(printed)
        return Comparison(
            outcome="" if found.p >= inference.ERROR else "slower" if found.ratio > 1 else "faster",
            ratio=found.ratio,
            low=found.low,
            high=found.high,
            took_s=took,
            beyond_own_error=factor is not None and float(factor[1]) - float(factor[2]) > 1,
            ranges_apart=max(times[0]) < min(times[1]) or max(times[1]) < min(times[0]),
        )

    def hyperfine_version(self) -> str:
        """Its version; raises [`Unavailable`]."""
        if shutil.which("hyperfine") is None:
            raise Unavailable("not on PATH; scripts/install-packages.sh peers, or cargo install hyperfine")
        version = self._run(["hyperfine", "--version"]).strip()
        try:
            self._run(["hyperfine", "-N", "--runs", "2", shlex.join(self.target.work(0))])
        except SystemExit as error:
            raise Unavailable(f"{version} has no -N here ({error}); version 1.13 or later") from error
        return version

    def _run(self, command: list[str], patience_s: float = PATIENCE_S) -> str:
        """Standard output of a command that must succeed."""
        bound = [str(self.target.program), "bound", str(os.getpid()), *command]
        process = subprocess.Popen(
            bound, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )
        try:
            said, complaint = process.communicate(timeout=patience_s)
        except BaseException:
            _ended(process)
            raise
        if process.returncode != 0:
            raise SystemExit(f"{shlex.join(command)}\nended with {process.returncode}\n{complaint}")
        return said


@dataclass
class Load:
    """A load that rises from nothing to [`BUSY_PERCENT`] of every processor within a time."""

    program: Path
    used: float = 0.0
    """Processors it took on average over all comparisons: set by [`Load.rising`]."""
    _cpu_s: float = 0.0
    _wall_s: float = 0.0

    @contextmanager
    def rising(self, within_s: float) -> Iterator[None]:
        """Starts the load and kills it at the end."""
        began = time.monotonic()
        words = [str(self.program), "load", str(os.getpid()), f"{within_s * 1e3:.0f}", str(BUSY_PERCENT)]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        try:
            yield
            if process.poll() is not None:
                raise SystemExit(f"the load ended by itself with {process.returncode}")
        finally:
            if process.returncode is None:
                os.kill(process.pid, signal.SIGKILL)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                self._cpu_s += usage.ru_utime + usage.ru_stime
                self._wall_s += time.monotonic() - began
                self.used = self._cpu_s / self._wall_s


def _ended(process: subprocess.Popen[str]) -> None:
    """Ends a tool, and waits for it; slowpath ends what it has started."""
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
