#!/usr/bin/env python3
"""Builds programs of tests, runs them, and prints what their runners say, failures whole, and at the end every test that
skipped and why.

    scripts/rust_tests.py [--longest | --others] [ARGUMENT...]        arguments of cargo test

    --longest   only the program that takes longest, and those that run beside it
    --others    only those that --longest leaves

One program runs after the other, as cargo has it, but for two lists of them, each one after the other too: those that
wait most of their time run beside the program that takes longest, and those that only compute take what the others
leave of the CPUs. All run, whichever fails.

A test that cannot run here prints a line `skipped: REASON` and passes; the runner hides that line. Targets that a test
starts may write to the runner's own output: only lines that a runner writes are shown, the whole output is kept in
target/test-output.log. With CI set, a skip that scripts/known-skips.txt does not list fails the run.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / "target" / "test-output.log"
KNOWN = ROOT / "scripts" / "known-skips.txt"

LONGEST = "cli commands"
# Each of them keeps a CPU busy for less than half of its time. Programs whose results depend on what else runs are not among them.
WAITING = {
    "context slowpath_context",
    "fix beside",
    "lab launches",
    "launch launches",
    "process slowpath_process",
    "zygote slowpath_zygote",
    "zygote zygote",
}
# They record no program and time none: when they get a CPU changes nothing.
COMPUTING = {
    "analysis known_answers",
    "analysis slowpath_analysis",
    "experiment calibration",
    "experiment coverage",
    "foreign-data corpora",
    "house repository",
    "import slowpath_import",
    "recording files",
    "recording hostile_manifest",
    "report printed",
    "report slowpath_report",
    "seccomp hostile",
    "symbols executables",
    "verify bisection",
    "verify slowpath_verify",
}
# SCHED_IDLE of sched(7): whoever else wakes on that CPU gets it at once.
LEAVING = ("chrt", "--idle", "0")

OWN = re.compile(rb"^(test result: |running \d+ tests?$|test .* \.\.\. (FAILED|ignored)|error(\[|:)|warning: |thread ')")
SECTION = re.compile(rb"^---- (?P<test>.*) stdout ----\s*$")
SKIP = re.compile(rb"^skipped: (?P<why>.*?)\s*$")
RESULT = re.compile(rb"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored")


@dataclass(frozen=True)
class Program:
    """A program of tests that cargo has built."""

    name: str
    """Folder of its package, and target."""
    path: str
    directory: str
    """Its package's: where it runs."""


@dataclass
class Seen:
    """What the lines of one program say up to now."""

    test: str = "?"
    mode: str = "running"
    """`running`, in the output of tests that passed (`passed`), or in that of tests that failed (`failed`)."""
    skips: list[tuple[str, str]] = field(default_factory=list)
    """Test and reason."""
    counts: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Tests that passed, failed and were ignored."""

    def shows(self, line: bytes) -> bool:
        """Takes a line; whether it is one for the screen."""
        if result := RESULT.match(line):
            self.mode = "running"
            self.counts = [had + int(more) for had, more in zip(self.counts, result.groups())]
            return True
        stripped = line.rstrip()
        if stripped in (b"successes:", b"failures:"):
            self.mode = "passed" if stripped == b"successes:" else "failed"
            return self.mode == "failed"
        if section := SECTION.match(line):
            self.test = section["test"].decode(errors="replace")
        if self.mode == "passed" and (skip := SKIP.match(line)):
            self.skips.append((self.test, skip["why"].decode(errors="replace")))
        return self.mode == "failed" or (self.mode == "running" and OWN.match(line) is not None)


@dataclass
class Results:
    """Of all programs that have ended. Two threads run programs: each adds what one has printed, whole."""

    skips: list[tuple[str, str, str]] = field(default_factory=list)
    """Program, test and reason."""
    counts: list[int] = field(default_factory=lambda: [0, 0, 0])
    ended: int = 0
    """Programs."""
    failed: list[str] = field(default_factory=list)
    """Programs that did not end with 0."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, program: Program) -> None:
        """Says what runs: whoever waits for it sees what does not end."""
        with self.lock:
            print(f"     Running {program.name}", flush=True)

    def add(self, program: Program, printed: bytes, status: int) -> None:
        """Prints what is for the screen, and keeps all."""
        seen = Seen()
        shown = [line for line in printed.splitlines(keepends=True) if seen.shows(line)]
        head = f"       Ended {program.name}\n".encode()
        with self.lock:
            with LOG.open("ab") as log:
                log.write(head + printed)
            sys.stdout.buffer.write(head + b"".join(shown))
            if status != 0:
                sys.stdout.buffer.write(f"error: {program.name} ended with {status}\n".encode())
                self.failed.append(program.name)
            sys.stdout.buffer.flush()
            self.ended += 1
            self.skips += [(program.name, test, why) for test, why in seen.skips]
            self.counts = [had + more for had, more in zip(self.counts, seen.counts)]


def built(arguments: list[str]) -> list[Program] | None:
    """Builds the programs of tests, in cargo's order; nothing when they do not build, which cargo has said."""
    command = ["cargo", "test", "--quiet", "--locked", *arguments, "--no-run", "--message-format=json-render-diagnostics"]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        return None
    programs = []
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            directory = Path(message["manifest_path"]).parent
            name = f"{directory.name} {message['target']['name']}"
            programs.append(Program(name, message["executable"], str(directory)))
    return programs


def run(programs: list[Program], results: Results, before: Sequence[str] = ()) -> None:
    """Runs programs, each by the command `before`, one after the other, up to one that an interruption ended: whoever interrupts this
    script interrupts them, too."""
    for program in programs:
        results.begin(program)
        done = subprocess.run(
            [*before, program.path, "--show-output"],
            cwd=program.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        results.add(program, done.stdout, done.returncode)
        if done.returncode == -signal.SIGINT:
            return


def known() -> list[re.Pattern[str]]:
    """Skips that are expected where CI runs: expressions on `program: test: reason`."""
    lines = KNOWN.read_text(encoding="utf-8").splitlines()
    return [re.compile(line) for line in lines if line and not line.startswith("#")]


def main() -> int:
    """Runs the tests."""
    arguments = sys.argv[1:]
    part = arguments.pop(0) if arguments[:1] in (["--longest"], ["--others"]) else None
    LOG.parent.mkdir(exist_ok=True)
    if part != "--others":
        LOG.write_bytes(b"")
    # Tests that record, launch and wait keep a CPU busy for three quarters of the time.
    os.environ.setdefault("RUST_TEST_THREADS", str((os.cpu_count() or 1) + 1))
    programs = built(arguments)
    if programs is None:
        return 101
    gone = (WAITING | COMPUTING | {LONGEST}) - {program.name for program in programs}
    if "--tests" in arguments and gone:
        print(f"rust_tests: no programs of tests: {', '.join(sorted(gone))}", file=sys.stderr)
        return 2
    # The longest first: what runs beside has most of its time.
    programs.sort(key=lambda program: program.name != LONGEST)
    waiting = [program for program in programs if program.name in WAITING]
    computing = [program for program in programs if program.name in COMPUTING]
    rest = [program for program in programs if program.name not in WAITING | COMPUTING]
    if part == "--longest":
        rest = [program for program in rest if program.name == LONGEST]
    elif part == "--others":
        waiting, computing, rest = [], [], [program for program in rest if program.name != LONGEST]
    results = Results()
    lanes = [(waiting, results), (computing, results, LEAVING)]
    beside = [threading.Thread(target=run, args=lane, daemon=True) for lane in lanes]
    for thread in beside:
        thread.start()
    run(rest, results)
    for thread in beside:
        thread.join()
    chosen = len(waiting) + len(computing) + len(rest)
    if results.ended != chosen:
        print(f"rust_tests: only {results.ended} of {chosen} programs of tests were run", file=sys.stderr)
        return 2

    passed, failed, ignored = results.counts
    print(f"\nRust tests: {passed} passed, {failed} failed, {ignored} ignored; {len(results.skips)} could not run in full here")
    expected = known()
    strange = 0
    for program, test, why in sorted(set(results.skips)):
        text = f"{program}: {test}: {why}"
        is_known = any(expression.search(text) for expression in expected)
        strange += not is_known
        print(f"  skipped{'' if is_known else ' (not expected where CI runs)'}: {text}")
    if results.failed:
        print(f"failed: {', '.join(results.failed)}; the whole output: {LOG.relative_to(ROOT)}")
        return 101
    if strange and os.environ.get("CI"):
        print("scripts/known-skips.txt lists the skips that are expected there; these are not")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
