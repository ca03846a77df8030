#!/usr/bin/env python3
"""Builds programs of tests, runs them, and prints what their runners say, failures whole, and at the end every test that
skipped and why.

    scripts/rust_tests.py [ARGUMENT...]        arguments of cargo test

One program runs after the other, as cargo has it, but for those that wait most of their time: they run, one after the
other too, beside the program that takes longest. All run, whichever fails.

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
    "session slowpath_session",
    "zygote slowpath_zygote",
    "zygote zygote",
}

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


def run(programs: list[Program], results: Results) -> None:
    """Runs programs one after the other, up to one that an interruption ended: whoever interrupts this script interrupts them, too."""
    for program in programs:
        results.begin(program)
        done = subprocess.run(
            [program.path, "--show-output"],
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
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_bytes(b"")
    # Tests that record, launch and wait keep a CPU busy for three quarters of the time.
    os.environ.setdefault("RUST_TEST_THREADS", str((os.cpu_count() or 1) + 1))
    programs = built(sys.argv[1:])
    if programs is None:
        return 101
    gone = (WAITING | {LONGEST}) - {program.name for program in programs}
    if "--tests" in sys.argv and gone:
        print(f"rust_tests: no programs of tests: {', '.join(sorted(gone))}", file=sys.stderr)
        return 2
    # The longest first: what waits has most of its time to run beside.
    programs.sort(key=lambda program: program.name != LONGEST)
    results = Results()
    beside = threading.Thread(target=run, args=([one for one in programs if one.name in WAITING], results), daemon=True)
    beside.start()
    run([one for one in programs if one.name not in WAITING], results)
    beside.join()
    if results.ended != len(programs):
        print(f"rust_tests: only {results.ended} of {len(programs)} programs of tests were run", file=sys.stderr)
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
