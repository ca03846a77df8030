"""Workloads in which the machine is loaded: work on all processors that is sampled, and a neighbour of what is recorded."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from processes import cpu_of_others, named, stat_of, used_between
from recorders import DEFAULT, END_SECONDS, Recorder, RunFailed, Slowpath, end
from workloads import Part, Sample

DEPTH = 20
"""Frames above the loop that is sampled."""
ATTACH_SECONDS = 30.0
SLEEP = shutil.which("sleep") or "/usr/bin/sleep"


class Sampling:
    """ms of CPU that a fixed amount of work takes, on all processors together, with what the recorder itself uses meanwhile.

    The timer's interrupts count as CPU time of the program that they interrupt, where the kernel does not account for them
    apart (CONFIG_IRQ_TIME_ACCOUNTING); real time, which has everything, is shown beside.
    """

    RECORDERS = ("none", "bare", "perf-record-cpu")
    parts = [Part("sampling", "Fixed work on every processor, sampled at 1 kHz with stacks", "ms")]

    def __init__(self, programs: Path, scratch: Path, seconds: float) -> None:
        self.program = str(programs / "spin")
        self.scratch = scratch
        units = 2000
        command = [self.program, str(units), "500", str(DEPTH)]
        _, used = workers(subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout)
        self.units = max(100, round(units * seconds * 1e9 * len(os.sched_getaffinity(0)) / used))

    def takes(self, recorder: Recorder) -> bool:
        return recorder.name in self.RECORDERS or recorder.variant == "cpu"

    def run(self, recorder: Recorder) -> dict[str, Sample]:
        # What warms up also covers what a recorder does when a program starts.
        target = [self.program, str(self.units), str(self.units // 4), str(DEPTH)]
        with tempfile.TemporaryDirectory(dir=self.scratch) as name:
            directory = Path(name)
            looked = directory / "looked"
            running = recorder.start(directory, [*target, str(looked)])
            process, out, before, after = running.process, "", {}, {}
            watchdog = threading.Timer(END_SECONDS, process.kill)
            watchdog.start()
            try:
                for line in process.stdout or ():
                    out += line
                    if line == "begin\n":
                        before = cpu_of_others(process.pid, "spin")
                    elif line == "end\n":
                        after = cpu_of_others(process.pid, "spin")
                        looked.touch()
            finally:
                watchdog.cancel()
                running.wait()
            if process.returncode or not out.endswith("end\n"):
                raise RunFailed((directory / "messages").read_text(encoding="utf-8"))
            wall, work = workers(out)
            own = used_between(before, after) / 1e6
            seen = recorder.seen(directory)
            further = {"real time ms": wall / 1e6, "recorder's CPU ms": own}
            if seen and seen.samples is not None:
                further["samples"] = seen.samples
            return {"sampling": Sample(work / 1e6 + own, work / 1e6 + own, seen, cpu=work / 1e6, further=further)}


def workers(out: str) -> tuple[float, float]:
    """Mean real time and sum of CPU time of the processes of spin.c, ns."""
    lines = [line.split() for line in out.splitlines() if line.startswith("worker ")]
    if not lines:
        raise RunFailed("spin did no work")
    return statistics.mean(int(line[2]) for line in lines), sum(int(line[3]) for line in lines)


class Neighbour:
    """ns of real time of what a program does that is not recorded, while something else is: a process that sleeps."""

    RECORDERS = ("none", "perf-trace-s", "bpftrace-calls")
    VARIANTS = (DEFAULT, "stacks-cpu", "waits-memory", "files")
    parts = [
        Part("neighbour-calls", "Not recorded: getpid, read of one byte, close", "ns"),
        Part("neighbour-mappings", "Not recorded: mmap of 4 KiB, a write to it, munmap", "ns"),
        Part("neighbour-pipe", "Not recorded: a byte through a pipe to another process and back", "ns"),
    ]

    def __init__(self, programs: Path, scratch: Path, chunks: int) -> None:
        self.command = [str(programs / "neighbour"), str(chunks)]
        self.scratch = scratch

    def takes(self, recorder: Recorder) -> bool:
        return recorder.name in self.RECORDERS or recorder.variant in self.VARIANTS

    def run(self, recorder: Recorder) -> dict[str, Sample]:
        with tempfile.TemporaryDirectory(dir=self.scratch) as name:
            directory = Path(name)
            # The base has the sleeping process too. slowpath records it as one that runs already: a service, say, beside others.
            beside = None
            if isinstance(recorder, Slowpath):
                beside = subprocess.Popen([SLEEP, "600"], stdin=subprocess.DEVNULL)
                running = recorder.follow(directory, beside.pid)
            else:
                running = recorder.start(directory, [SLEEP, "600"])
            try:
                if beside:
                    wait_for_events(running.process, directory)
                sleeper = beside.pid if beside else wait_for(running.process, "sleep", directory)
                done = subprocess.run(self.command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=END_SECONDS)
                if running.process.poll() is not None:
                    raise RunFailed("the recorder ended early: " + (directory / "messages").read_text(encoding="utf-8"))
                os.kill(sleeper, signal.SIGTERM)
                if beside:
                    beside.wait()  # else it is there as long as nobody asks how it ended, and is recorded
                running.wait()
            except BaseException:
                end(running.process, signal.SIGTERM)
                raise
            finally:
                if beside:
                    beside.kill()
                    beside.wait()
            if done.returncode:
                raise RunFailed(f"the neighbour failed: {done.stderr}")
            seen = recorder.seen(directory)
            chunks: dict[str, list[float]] = {}
            for kind, took, number in (line.split() for line in done.stdout.splitlines()):
                chunks.setdefault(f"neighbour-{kind}", []).append(int(took) / int(number))
            # The first chunk of each warms up.
            return {kind: Sample(statistics.median(values[1:]), min(values[1:]), seen) for kind, values in chunks.items()}


def wait_for_events(process: subprocess.Popen[str], directory: Path) -> None:
    """Waits until slowpath holds events of processors, which it opens when it begins to follow what runs."""
    deadline = time.monotonic() + ATTACH_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        texts = []
        for entry in Path(f"/proc/{process.pid}/fdinfo").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                texts.append(entry.read_text(encoding="utf-8"))
        if any("link_type:\tperf" in text and "tp_name" not in text for text in texts):
            time.sleep(0.3)
            return
        time.sleep(0.02)
    raise RunFailed("nothing was attached: " + (directory / "messages").read_text(encoding="utf-8"))


def wait_for(process: subprocess.Popen[str], name: str, directory: Path) -> int:
    """Waits until a recorder has started its command and that runs; returns the command's pid."""
    deadline = time.monotonic() + ATTACH_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        # A process that is stopped until everything is attached has its name only from its exec on.
        if (pid := named(process.pid, name)) and (stat := stat_of(pid)) and stat[1][0] == "S":
            time.sleep(0.3)
            return pid
        time.sleep(0.02)
    raise RunFailed("the command was not started: " + (directory / "messages").read_text(encoding="utf-8"))
