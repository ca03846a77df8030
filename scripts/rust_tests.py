#!/usr/bin/env python3
"""Runs `cargo test` and prints what its runners say, failures whole, and at the end every test that skipped and why.

    scripts/rust_tests.py [ARGUMENT...]        arguments of cargo test

A test that cannot run here prints a line `skipped: REASON` and passes; the runner hides that line. Targets that a test
starts may write to the runner's own output: only lines that a runner writes are shown, the whole output is kept in
target/test-output.log. With CI set, a skip that scripts/known-skips.txt does not list fails the run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / "target" / "test-output.log"
KNOWN = ROOT / "scripts" / "known-skips.txt"

BINARY = re.compile(rb"^     Running (?:unittests )?(?P<what>.*) \(.*\)\s*$")
BUILT = re.compile(rb"^ +(Compiling|Downloaded|Downloading) ")
OWN = re.compile(rb"^(test result: |running \d+ tests?$|test .* \.\.\. (FAILED|ignored)|error(\[|:)|warning: |thread ')")
SECTION = re.compile(rb"^---- (?P<test>.*) stdout ----\s*$")
SKIP = re.compile(rb"^skipped: (?P<why>.*?)\s*$")
RESULT = re.compile(rb"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored")


@dataclass
class Seen:
    """What the lines up to now say."""

    binary: str = "?"
    test: str = "?"
    mode: str = "building"
    """`building`, `running`, in the output of tests that passed (`passed`), or in that of tests that failed (`failed`)."""
    skips: list[tuple[str, str, str]] = field(default_factory=list)
    """Binary, test and reason."""
    counts: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Tests that passed, failed and were ignored."""

    def shows(self, line: bytes) -> bool:
        """Takes a line; whether it is one for the screen."""
        if binary := BINARY.match(line):
            self.binary = binary["what"].decode(errors="replace")
            self.mode = "running"
            return True
        if result := RESULT.match(line):
            self.mode = "running"
            self.counts = [had + int(more) for had, more in zip(self.counts, result.groups())]
            return True
        if self.mode == "building":
            return BUILT.match(line) is None
        stripped = line.rstrip()
        if stripped in (b"successes:", b"failures:"):
            self.mode = "passed" if stripped == b"successes:" else "failed"
            return self.mode == "failed"
        if section := SECTION.match(line):
            self.test = section["test"].decode(errors="replace")
        if self.mode == "passed" and (skip := SKIP.match(line)):
            self.skips.append((self.binary, self.test, skip["why"].decode(errors="replace")))
        return self.mode == "failed" or (self.mode == "running" and OWN.match(line) is not None)


def known() -> list[re.Pattern[str]]:
    """Skips that are expected where CI runs: expressions on `binary: test: reason`."""
    lines = KNOWN.read_text(encoding="utf-8").splitlines()
    return [re.compile(line) for line in lines if line and not line.startswith("#")]


def main() -> int:
    """Runs the tests."""
    LOG.parent.mkdir(exist_ok=True)
    # Tests that record, launch and wait keep a CPU busy for three quarters of the time.
    os.environ.setdefault("RUST_TEST_THREADS", str((os.cpu_count() or 1) + 1))
    command = ["cargo", "test", "--locked", *sys.argv[1:], "--", "--show-output"]
    seen = Seen()
    with LOG.open("wb") as log, subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as cargo:
        assert cargo.stdout is not None
        for line in cargo.stdout:
            log.write(line)
            if seen.shows(line):
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
    passed, failed, ignored = seen.counts
    print(f"\nRust tests: {passed} passed, {failed} failed, {ignored} ignored; {len(seen.skips)} could not run in full here")
    expected = known()
    strange = 0
    for binary, test, why in sorted(set(seen.skips)):
        text = f"{binary}: {test}: {why}"
        is_known = any(expression.search(text) for expression in expected)
        strange += not is_known
        print(f"  skipped{'' if is_known else ' (not expected where CI runs)'}: {text}")
    if cargo.returncode != 0:
        print(f"the whole output: {LOG.relative_to(ROOT)}")
        return cargo.returncode
    if strange and os.environ.get("CI"):
        print("scripts/known-skips.txt lists the skips that are expected there; these are not")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
