"""What a recorder is here, and slowpath's: how one is started around a command, and what it says that it lost.

A recorder writes into a directory of its own. The command is started by the recorder itself where it can do so; a
recorder of the whole machine (bpftrace) is started first, and the command when its events are attached. The recorders that
slowpath is compared with are in other_tools.py.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

END_SECONDS = 120.0
DEFAULT = "default"
"""The variant without options."""


class RunFailed(Exception):
    """A recorder or its command did not do what it should; the run does not count."""


@dataclass
class Seen:
    """What a recorder recorded of one command."""

    faults: int | None
    """Page faults, where it records them one by one for this command alone."""
    lost: int
    """Events that it says it lost, of all kinds."""
    samples: int | None = None
    """CPU samples, where it takes them."""


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
    variant: str | None = None
    """Which of slowpath's ways to record this is, for the limits (limits.py); none for what is only compared."""
    needs: str | None = None
    """The program that it needs."""
    every = 1
    """It takes part in each round whose number this divides: more than 1 for what takes long."""

    def command(self, directory: Path, target: list[str]) -> list[str]:
        """The command line that runs `target`."""
        return target

    def beside(self, directory: Path) -> subprocess.Popen[str] | None:
        """A recorder that is started before the command, ready to record."""
        return None

    def seen(self, directory: Path) -> Seen | None:
        """What was recorded, read after the end."""
        return None

    def collapsed(self, directory: Path) -> list[str] | None:
        """The recorded faults as collapsed stacks, where they have any that can be read quickly."""
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
    """`slowpath record`: every probe that it has, faults with their duration, and what its options add."""

    def __init__(self, binary: Path, name: str, variant: str, options: list[str]) -> None:
        self.binary = binary
        self.needs = str(binary)
        self.name = name if variant == DEFAULT else f"{name}-{variant}"
        self.variant = variant
        self.options = options
        self.title = " ".join([name, "record", *options])

    def command(self, directory: Path, target: list[str]) -> list[str]:
        return [str(self.binary), "record", "--quiet", *self.options, "-o", str(directory / "recording"), "--", *target]

    def follow(self, directory: Path, pid: int) -> Running:
        """Records a process that runs already."""
        command = [str(self.binary), "record", "--quiet", *self.options, "-o", str(directory / "recording"), "--pid", str(pid)]
        with open(directory / "messages", "w", encoding="utf-8") as messages:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages, text=True)
        return Running(self, process, None)

    def seen(self, directory: Path) -> Seen | None:
        manifest = self.manifest(directory)
        rows: Counter[str] = Counter()
        for segment in manifest["segments"]:
            rows[segment["table"]] += segment["rows"]
        return Seen(rows["faults"], sum(manifest["losses"].values()), rows["cpu_samples"])

    def manifest(self, directory: Path) -> dict[str, Any]:
        """The manifest of the recording."""
        manifest: dict[str, Any] = json.loads((directory / "recording" / "manifest.json").read_text(encoding="utf-8"))
        return manifest

    def collapsed(self, directory: Path) -> list[str] | None:
        if "--stacks" not in self.options:
            return None
        done = subprocess.run(
            # The name that versions before this one know too.
            [*self.export(directory), "--to", "collapsed", "--what", "faults"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=END_SECONDS,
        )
        if done.returncode:
            raise RunFailed(f"{self.name}: the recording cannot be exported: {done.stderr}")
        return done.stdout.splitlines()

    def export(self, directory: Path) -> list[str]:
        """The beginning of a command that exports the recording."""
        return [str(self.binary), "export", str(directory / "recording"), "--quiet"]


def slowpaths(binary: Path, name: str) -> list[Slowpath]:
    """The ways in which slowpath is measured; each workload takes those that concern it."""
    variants = {
        DEFAULT: [],
        "stacks": ["--stacks", "fault"],
        "cpu": ["--sample", "1000"],
        "stacks-cpu": ["--stacks", "fault", "--sample", "1000"],
        "waits-memory": ["--off-cpu", "--memory-calls"],
        "files": ["--files"],
    }
    return [Slowpath(binary, name, variant, options) for variant, options in variants.items()]
