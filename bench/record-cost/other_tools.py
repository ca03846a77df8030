"""The recorders that slowpath is compared with: perf, bpftrace, and an event that records nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from recorders import Recorder, RunFailed, Seen, end

ATTACH_SECONDS = 30.0
BPFTRACE_PROGRAM = "software:page-faults:1 { @[ustack] = count(); }"
CALLS_PROGRAM = "tracepoint:raw_syscalls:sys_enter /pid == cpid/ { @[args->id] = count(); }"
FAULTS = ["-e", "page-faults", "-c1"]
CPU = ["-e", "cpu-clock", "-F", "1000", "-g"]


class PerfRecord(Recorder):
    """`perf record` of every page fault, without stacks, with those of frame pointers (which most programs do not have), or
    with a copy of 8 KiB of the stack for each; its default buffers."""

    needs = "perf"

    def __init__(self, name: str, options: list[str], every: int = 1) -> None:
        self.options = options
        self.name = name
        self.every = every
        self.title = " ".join(["perf record", *options])

    def command(self, directory: Path, target: list[str]) -> list[str]:
        data = str(directory / "perf.data")
        return ["perf", "record", "-q", "--no-buildid-cache", *self.options, "-o", data, "--", *target]

    def seen(self, directory: Path) -> Seen | None:
        done = subprocess.run(
            ["perf", "report", "--stats", "-i", str(directory / "perf.data")],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )
        # Those of all events come first, then those of each event again.
        aggregated = re.split(r"^\S+ stats:", done.stdout.partition("Aggregated stats:")[2], maxsplit=1, flags=re.MULTILINE)[0]
        counts = {kind: int(number) for kind, number in re.findall(r"(\w+) events:\s+(\d+)", aggregated)}
        # perf says how many records of loss there are, each for one event or more: a lower bound.
        lost = sum(int(number) for number in re.findall(r"lost (\d+)", done.stderr))
        samples = counts.get("SAMPLE", 0)
        lost = max(lost, counts.get("LOST_SAMPLES", 0), counts.get("LOST", 0))
        return Seen(samples if FAULTS[1] in self.options else None, lost, samples)


class PerfTrace(Recorder):
    """`perf trace -F all`: a line of text for each fault and each system call."""

    needs = "perf"
    name = "perf-trace"
    title = "perf trace -F all"

    def command(self, directory: Path, target: list[str]) -> list[str]:
        return ["perf", "trace", "-F", "all", "-o", str(directory / "trace"), "--", *target]

    def seen(self, directory: Path) -> Seen | None:
        text = (directory / "trace").read_text(encoding="utf-8", errors="replace")
        lost = sum(int(number) for number in re.findall(r"LOST (\d+) events", text))
        return Seen(len(re.findall(r" (?:min|maj)fault \[", text)), lost)


class PerfTraceSummary(Recorder):
    """`perf trace -s`: the system calls of its command, summed up."""

    needs = "perf"
    name = "perf-trace-s"
    title = "perf trace -s"

    def command(self, directory: Path, target: list[str]) -> list[str]:
        return ["perf", "trace", "-s", "-o", str(directory / "trace"), "--", *target]


class BpftraceCalls(Recorder):
    """`bpftrace` counting the system calls of its command: its program is run for everyone's."""

    needs = "bpftrace"
    name = "bpftrace-calls"
    title = "bpftrace, raw_syscalls of one process"

    def command(self, directory: Path, target: list[str]) -> list[str]:
        return ["bpftrace", "-o", str(directory / "counts"), "-c", " ".join(target), "-e", CALLS_PROGRAM]


class BareEvent(Recorder):
    """An event of the CPU clock that only fires, at 1 kHz on every processor (cpu_events.c): what sampling costs at least."""

    name = "bare"
    title = "event at 1 kHz that records nothing"

    def __init__(self, programs: Path) -> None:
        self.program = programs / "cpu_events"

    def command(self, directory: Path, target: list[str]) -> list[str]:
        return [str(self.program), "1000", *target]


class Bpftrace(Recorder):
    """`bpftrace`, counting page faults by user stack; it sees the whole machine, so its count is nobody's."""

    needs = "bpftrace"
    name = "bpftrace"
    title = "bpftrace, count by ustack"

    def beside(self, directory: Path) -> subprocess.Popen[str] | None:
        environment = {**os.environ, "BPFTRACE_NO_USER_SYMBOLS": "1", "BPFTRACE_MAP_KEYS_MAX": "131072"}
        with open(directory / "bpftrace-messages", "w", encoding="utf-8") as messages:
            process = subprocess.Popen(
                ["bpftrace", "-o", str(directory / "counts"), "-e", BPFTRACE_PROGRAM],
                stdin=subprocess.DEVNULL, stdout=messages, stderr=messages, text=True, env=environment,
            )
        # An event of its buffer and one of the program for each processor.
        wanted = 2 * (os.cpu_count() or 1)
        deadline = time.monotonic() + ATTACH_SECONDS
        while perf_events_of(process.pid) < wanted:
            if process.poll() is not None or time.monotonic() > deadline:
                end(process, signal.SIGINT)
                raise RunFailed("bpftrace was not ready: " + (directory / "bpftrace-messages").read_text(encoding="utf-8"))
            time.sleep(0.02)
        return process

    def seen(self, directory: Path) -> Seen | None:
        text = (directory / "bpftrace-messages").read_text(encoding="utf-8", errors="replace")
        return Seen(None, sum(int(number) for number in re.findall(r"[Ll]ost (\d+) events", text)))


def perf_events_of(pid: int) -> int:
    """Perf events that a process holds open."""
    count = 0
    try:
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            try:
                count += os.readlink(f"/proc/{pid}/fd/{descriptor}") == "anon_inode:[perf_event]"
            except FileNotFoundError:
                continue
    except FileNotFoundError:
        return 0
    return count


def other_tools(programs: Path) -> list[Recorder]:
    """All of them; each workload takes those that concern it."""
    return [
        BareEvent(programs),
        PerfRecord("perf-record", FAULTS),
        PerfRecord("perf-record-g", [*FAULTS, "-g"]),
        # Writes 8 KiB a fault: in every fourth round is enough to see what that costs.
        PerfRecord("perf-record-dwarf", [*FAULTS, "--call-graph", "dwarf"], every=4),
        PerfRecord("perf-record-cpu", CPU),
        PerfTrace(),
        PerfTraceSummary(),
        Bpftrace(),
        BpftraceCalls(),
    ]
