"""Workloads that are recorded: many anonymous faults, and the launch of a browser to its page's first script. What is not
recorded itself, or sampled, is in load.py."""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from observer import CpuAccount, Observer
from recorders import DEFAULT, Recorder, RunFailed, Seen
from stacks import whole_share

HERE = Path(__file__).resolve().parent
CHROMIUM = "/usr/lib/chromium/chromium"
CHROMIUM_OPTIONS = [
    "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic",
]
# Chromium keeps its sandbox, which needs an unprivileged user: nobody.
CHROMIUM_UID = 65534
LAUNCH_SECONDS = 90.0


@dataclass
class Sample:
    """One run of a workload under one recorder."""

    value: float
    """ns of CPU per fault, or ms from exec to the first script."""
    fastest: float
    """The same of the fastest repetition within the run: what other load disturbs least."""
    seen: Seen | None
    counted: tuple[int, int] | None = None
    """Faults of the command by the kernel's own counters: at least, at most (see faults.c)."""
    cpu: float | None = None
    """ms of CPU of the launched tree until then, without the recorder's own processes."""
    whole: float | None = None
    """Share of the recorded faults whose stacks are whole."""
    further: dict[str, float] = field(default_factory=dict)
    """What else was measured, by name with unit; its medians are printed."""


@dataclass
class Part:
    """One of the results that a workload has."""

    name: str
    title: str
    unit: str


class Workload(Protocol):
    """What is run under the recorders."""

    parts: list[Part]
    """Its results, each with a sample from every run."""

    def takes(self, recorder: Recorder) -> bool:
        """Whether this recorder's cost is measured here."""

    def run(self, recorder: Recorder) -> dict[str, Sample]:
        """One run: a sample for each part, by its name."""


def compile_programs(directory: Path) -> None:
    """Compiles the C programs into `directory`."""
    for name, options in (("faults", ["-static"]), ("start", []), ("spin", []), ("cpu_events", []), ("neighbour", [])):
        source = str(HERE / f"{name}.c")
        subprocess.run(["cc", "-O2", "-Wall", *options, "-o", str(directory / name), source], check=True)


class Faults:
    """ns of CPU per anonymous fault of 4 KiB; the first repetition of each run warms up and does not count."""

    RECORDERS = ("none", "perf-record", "perf-record-g", "perf-record-dwarf", "perf-trace", "bpftrace")
    DEEP = ("none", "perf-record-g", "perf-record-dwarf", "bpftrace")

    def __init__(self, programs: Path, scratch: Path, megabytes: int, repetitions: int, depth: int = 0) -> None:
        self.target = [str(programs / "faults"), str(megabytes), str(repetitions), str(depth)]
        self.scratch = scratch
        self.depth = depth
        title = "One anonymous page fault" + (f", {depth} calls deep" if depth else "")
        self.parts = [Part("faults-deep" if depth else "faults", title, "ns")]

    def takes(self, recorder: Recorder) -> bool:
        if self.depth:
            return recorder.name in self.DEEP or recorder.variant == "stacks"
        return recorder.name in self.RECORDERS or recorder.variant in (DEFAULT, "stacks")

    def run(self, recorder: Recorder) -> dict[str, Sample]:
        with tempfile.TemporaryDirectory(dir=self.scratch) as name:
            directory = Path(name)
            running = recorder.start(directory, self.target)
            lines = [line.split() for line in running.wait().splitlines()]
            touched = [int(line[1]) / int(line[2]) for line in lines if line[:1] == ["touch"]]
            counted = [(int(line[1]), int(line[2])) for line in lines if line[:1] == ["counted"]]
            if running.process.returncode or len(touched) < 2 or len(counted) != 1:
                raise RunFailed((directory / "messages").read_text(encoding="utf-8"))
            seen = recorder.seen(directory)
            if seen and seen.faults is not None and seen.lost:
                # A recorder that knows only that it lost something, not how much: what the kernel counted besides.
                seen.lost = max(seen.lost, counted[0][0] - seen.faults)
            collapsed = recorder.collapsed(directory)
            whole = None if collapsed is None else whole_share(collapsed, self.depth) or 0.0
            return {self.parts[0].name: Sample(statistics.median(touched[1:]), min(touched[1:]), seen, counted[0], whole=whole)}


class ChromiumLaunch:
    """ms from the exec of Chromium (in start.c) to the first script of a page, with a new profile and a warm cache."""

    parts = [Part("chromium", "Launch of Chromium to its page's first script", "ms")]
    RECORDERS = ("none", "perf-record", "perf-record-g", "perf-trace", "bpftrace")

    def __init__(self, programs: Path, scratch: Path, profiles: Path) -> None:
        self.programs = programs
        self.scratch = scratch
        self.profiles = profiles

    def takes(self, recorder: Recorder) -> bool:
        return recorder.name in self.RECORDERS or recorder.variant == DEFAULT

    def run(self, recorder: Recorder) -> dict[str, Sample]:
        """Launches it once and ends it."""
        account = CpuAccount()
        observer = Observer(account.used_ms)
        home = Path(tempfile.mkdtemp(dir=self.profiles))
        os.chown(home, CHROMIUM_UID, CHROMIUM_UID)
        try:
            with tempfile.TemporaryDirectory(dir=self.scratch) as name:
                directory = Path(name)
                stamp = directory / "started"
                target = [
                    "/usr/bin/env", f"HOME={home}", f"TMPDIR={home}", str(self.programs / "start"), str(stamp), account.tasks(),
                    str(CHROMIUM_UID), CHROMIUM, *CHROMIUM_OPTIONS, f"--user-data-dir={home}/profile", observer.url,
                ]
                running = recorder.start(directory, target)
                try:
                    observer.called.wait(LAUNCH_SECONDS)
                    pid, started = end_browser(stamp)
                    running.wait()
                finally:
                    kill_all_of(home, account)
                if not observer.called.is_set():
                    raise RunFailed(f"Chromium (pid {pid}) ran no script within {LAUNCH_SECONDS:.0f} s")
                took = (observer.called_ns - started) / 1e6
                return {"chromium": Sample(took, took, recorder.seen(directory), cpu=observer.at_call)}
        finally:
            observer.close()
            account.close()
            shutil.rmtree(home, ignore_errors=True)


def kill_all_of(home: Path, account: CpuAccount) -> None:
    """Kills what still runs with this profile or in this account: not all of Chromium's helpers are told their profile."""
    members = account.members()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            pid = int(directory.name)
            if pid in members or f"--user-data-dir={home}/".encode() in (directory / "cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue


def end_browser(stamp: Path) -> tuple[int, int]:
    """Ends the browser that start.c started; returns its pid and when it was started."""
    try:
        pid, started = (int(word) for word in stamp.read_text(encoding="utf-8").split())
    except (FileNotFoundError, ValueError) as error:
        raise RunFailed("the command was never started") from error
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    return pid, started
