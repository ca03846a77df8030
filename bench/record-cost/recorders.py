"""The recorders that are compared: how each one is started around a command, and what it says that it lost.

A recorder writes into a directory of its own. The command is started by the recorder itself where it can do so; a
recorder of the whole machine (bpftrace) is started first, and the command when its events are attached.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ATTACH_SECONDS = 30.0
END_SECONDS = 120.0
BPFTRACE_PROGRAM = "software:page-faults:1 { @[ustack] = count(); }"


class RunFailed(Exception):
    """A recorder or its command did not do what it should; the run does not count."""


@dataclass
class Seen:
    """What a recorder recorded of one command."""

    faults: int | None
    """Page faults, where it records them one by one for this command alone."""
    lost: int
    """Events that it says it lost, of all kinds."""


class Running:
    """A command that runs under a recorder (or alone)."""

    def __init__(self, recorder: Recorder, process: subprocess.Popen[str], beside: subprocess.Popen[str] | None) -> None:
        self.recorder = recorder
        self.process = process
        self.beside = beside

    def wait(self) -> str:
        """Waits for the command and its recorder; returns what the command printed."""
        try:
            out, _ = self.process.communicate(timeout=END_SECONDS)
        finally:
            if self.process.poll() is None:
                # A recorder ends its command, or dies with it, on SIGTERM; the last resort is SIGKILL.
                end(self.process, signal.SIGTERM)
            if self.beside:
                end(self.beside, signal.SIGINT)
        return out


def end(process: subprocess.Popen[str], how: signal.Signals) -> None:
    """Asks a process to end, and makes it."""
    process.send_signal(how)
    try:
        process.wait(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Recorder:
    """No recorder: the base of all ratios."""

    name = "none"
    title = "none (base)"

    def command(self, directory: Path, target: list[str]) -> list[str]:
        """The command line that runs `target`."""
        return target

    def beside(self, directory: Path) -> subprocess.Popen[str] | None:
        """A recorder that is started before the command, ready to record."""
        return None

    def seen(self, directory: Path) -> Seen | None:
        """What was recorded, read after the end."""
        return None

    def start(self, directory: Path, target: list[str]) -> Running:
        """Starts `target` under this recorder."""
        beside = self.beside(directory)
        with open(directory / "messages", "w", encoding="utf-8") as messages:
            process = subprocess.Popen(
                self.command(directory, target), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages, text=True
            )
        return Running(self, process, beside)


class Slowpath(Recorder):
    """`slowpath record`: every probe that it has, faults with their duration."""

    def __init__(self, binary: Path, name: str = "slowpath") -> None:
        self.binary = binary
        self.name = name
        self.title = f"{name} record"

    def command(self, directory: Path, target: list[str]) -> list[str]:
        return [str(self.binary), "record", "--quiet", "-o", str(directory / "recording"), "--", *target]

    def seen(self, directory: Path) -> Seen | None:
        manifest = json.loads((directory / "recording" / "manifest.json").read_text(encoding="utf-8"))
        rows = sum(segment["rows"] for segment in manifest["segments"] if segment["table"] == "faults")
        return Seen(rows, sum(manifest["losses"].values()))


class PerfRecord(Recorder):
    """`perf record` of every page fault, with or without frame-pointer stacks; its default buffers."""

    def __init__(self, stacks: bool) -> None:
        self.stacks = ["-g"] if stacks else []
        self.name = "perf-record-g" if stacks else "perf-record"
        self.title = f"perf record -e page-faults -c1{' -g' if stacks else ''}"

    def command(self, directory: Path, target: list[str]) -> list[str]:
        data = str(directory / "perf.data")
        return ["perf", "record", "-q", "--no-buildid-cache", "-e", "page-faults", "-c1", *self.stacks, "-o", data, "--", *target]

    def seen(self, directory: Path) -> Seen | None:
        done = subprocess.run(
            ["perf", "report", "--stats", "-i", str(directory / "perf.data")],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )
        counts = {kind: int(number) for kind, number in re.findall(r"(\w+) events:\s+(\d+)", done.stdout.split("page-faults stats")[0])}
        # perf says how many records of loss there are, each for one event or more: a lower bound.
        lost = sum(int(number) for number in re.findall(r"lost (\d+)", done.stderr))
        return Seen(counts.get("SAMPLE", 0), max(lost, counts.get("LOST_SAMPLES", 0), counts.get("LOST", 0)))


class PerfTrace(Recorder):
    """`perf trace -F all`: a line of text for each fault and each system call."""

    name = "perf-trace"
    title = "perf trace -F all"

    def command(self, directory: Path, target: list[str]) -> list[str]:
        return ["perf", "trace", "-F", "all", "-o", str(directory / "trace"), "--", *target]

    def seen(self, directory: Path) -> Seen | None:
        text = (directory / "trace").read_text(encoding="utf-8", errors="replace")
        lost = sum(int(number) for number in re.findall(r"LOST (\d+) events", text))
        return Seen(len(re.findall(r" (?:min|maj)fault \[", text)), lost)


class Bpftrace(Recorder):
    """`bpftrace`, counting page faults by user stack; it sees the whole machine, so its count is nobody's."""

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
