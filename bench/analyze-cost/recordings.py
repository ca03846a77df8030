"""The recordings that are analysed: real programs, recorded until there are as many events as were asked for."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

TOUCHES = """
import mmap, random
m = mmap.mmap(-1, 40 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_NOHUGEPAGE)
pages = list(range(0, 40 << 20, 4096))
while True:
    random.shuffle(pages)
    for i in pages: m[i] = 1
    m.madvise(mmap.MADV_DONTNEED)
"""
"""Touches pages in an order without a pattern until it is ended, as in crates/cli/tests/commands/long_recordings.rs."""

STARTS = "while :; do for i in 1 2 3 4 5 6 7 8; do /bin/true & done; wait; done"

PROGRAMS = {
    "faults": ("A program that touches memory", ["/usr/bin/python3", "-c", TOUCHES], 1),
    "processes": ("Shells that start programs", ["/bin/sh", "-c", STARTS], 2),
}
"""What is recorded: in words, the command, how many of it."""
RECORDINGS = list(PROGRAMS)

WITH = ["--memory-calls", "--off-cpu", "--sample", "997", "--stacks", "fault,alloc,cpu,wait", "--max-size", "8G"]
FORMER = {"--off-cpu": "--waits", "--sample": "--cpu"}
"""What options are called in the version before issue 16."""
NO_EVENTS = {"stacks", "frames", "symbols", "files", "sections"}
"""Tables of what events refer to."""
PATIENCE = 900.0
"""Seconds until a recording must be large enough."""


@dataclass
class Recorded:
    """A recording."""

    name: str
    title: str
    directory: Path
    words: str
    empty_table: str


def options_of(slowpath: str) -> list[str]:
    """The options that record everything, as this version calls them."""
    known = subprocess.run([slowpath, "record", "--help"], capture_output=True, text=True, check=True).stdout
    return [FORMER.get(word, word) if word not in known else word for word in WITH]


def rows_of(directory: Path) -> Counter[str]:
    """Rows by table, as the manifest lists them."""
    rows: Counter[str] = Counter()
    for segment in json.loads((directory / "manifest.json").read_text())["segments"]:
        rows[segment["table"]] += segment["rows"]
    return rows


def events_of(directory: Path) -> int:
    """Events in a recording."""
    try:
        return sum(count for table, count in rows_of(directory).items() if table not in NO_EVENTS)
    except FileNotFoundError:
        return 0


def ended(processes: list[subprocess.Popen]) -> None:
    """Ends programs that end for nothing else, with what they started."""
    for process in processes:
        try:
            subprocess.run(["kill", "-KILL", "--", f"-{process.pid}"], check=False, stderr=subprocess.DEVNULL)
        finally:
            process.wait()


def record(kind: str, slowpath: str, directory: Path, events: int) -> Recorded:
    """Records one of the programs, unless that was done before."""
    title, command, count = PROGRAMS[kind]
    options = options_of(slowpath)
    if events_of(directory) < events:
        programs = [subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL) for _ in range(count)]
        pids = [word for program in programs for word in ("--pid", str(program.pid))]
        recorder = subprocess.Popen([slowpath, "record", "--quiet", *options, *pids, "-o", str(directory)], stderr=subprocess.PIPE, text=True)
        try:
            deadline = time.monotonic() + PATIENCE
            while events_of(directory) < events:
                if recorder.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"analyze-cost: {events_of(directory)} events of {kind}: {recorder.stderr.read() if recorder.poll() else 'too slow'}")
                print(f"recording {kind}: {events_of(directory)} events", file=sys.stderr, flush=True)
                time.sleep(2)
        finally:
            recorder.send_signal(signal.SIGINT)
            try:
                recorder.wait(300)
            finally:
                ended(programs)
    rows = rows_of(directory)
    largest = ", ".join(f"{table} {count}" for table, count in rows.most_common(6))
    size = sum(path.stat().st_size for path in directory.rglob("*.parquet")) / 1e6
    lost = {what: count for what, count in json.loads((directory / "manifest.json").read_text())["losses"].items() if count}
    words = f"{events_of(directory)} events, {size:.0f} MB, recorded with `{' '.join(options[:-2])}`; lost: {lost or 'none'}. Rows: {largest}."
    # Exported, it costs nothing beyond reading the recording.
    empty = next(table for table in ("readaheads", "block_io", "first_waits", "opens", "reads") if not rows[table])
    return Recorded(kind, title, directory, words, empty)


def faults_of(pid: int) -> int:
    """Faults of a process by the kernel's counter (proc_pid_stat(5), field 10)."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[7])


def perf_data(data: Path, events: int) -> Path:
    """As many faults of the first program, sampled by perf with call stacks by frame pointers."""
    if data.exists():
        return data
    program = subprocess.Popen(PROGRAMS["faults"][1], start_new_session=True, stdin=subprocess.DEVNULL)
    options = ["-q", "-e", "page-faults", "-c", "1", "-g", "-m", "32M", "--no-buildid-cache"]
    recorder = subprocess.Popen(["perf", "record", *options, "-o", str(data), "-p", str(program.pid)], stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        first = faults_of(program.pid)
        while faults_of(program.pid) < first + events:
            print(f"perf record: {faults_of(program.pid) - first} faults", file=sys.stderr, flush=True)
            time.sleep(2)
    finally:
        recorder.send_signal(signal.SIGINT)
        recorder.wait(300)
        ended([program])
    return data
