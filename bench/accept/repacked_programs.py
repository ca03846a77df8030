"""Copies of programs whose cold starts are compared with a preload plan beside them and without one."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnosed import CHROMIUM, SLOWPATH

HOME = ["--env", "HOME={tmp}", "--env", "TMPDIR={tmp}"]
# The lab's device as it is, and as slow as a cheap flash chip or a volume over the network.
AS_IT_IS: dict[str, list[str]] = {"as it is": []}
LIMITED = {"3,000 reads and 120 MB a second": ["--iops", "3000", "--bandwidth", "120M"]}


@dataclass(frozen=True)
class Program:
    """A program, its words, and when it is ready; `beside`: it looks for its files beside itself."""

    path: Path
    words: list[str]
    ready: str = "exit"
    beside: bool = False


PROGRAMS = {
    "python": Program(Path("/usr/bin/python3.11"), ["-I", "-S", "-c", "import json, re, socket"]),
    "node": Program(Path(shutil.which("node") or "/usr/bin/node"), ["-e", "0"]),
    "chromium": Program(Path(CHROMIUM[0]), CHROMIUM[1:], "browser", beside=True),
}


def placed(program: Program, place: Path) -> Path:
    """Where the binary of a copy stands, with what the program looks for beside itself."""
    place.mkdir(mode=0o755)
    if program.beside:
        for other in program.path.parent.iterdir():
            if other.name != program.path.name:
                (place / other.name).symlink_to(other)
    return place / program.path.name


def copied(program: Program, place: Path) -> Path:
    """A copy of the binary."""
    copy = placed(program, place)
    shutil.copyfile(program.path, copy)
    copy.chmod(0o755)
    return copy


def stripped(program: Path, place: Path) -> Path:
    """What users install: a copy without what debuggers need."""
    copy = place / program.name
    subprocess.run(["strip", "-o", copy, program], check=True)
    copy.chmod(0o755)
    return copy


def prefetcher(place: Path) -> Path:
    """The program that replays plans at starts, as it is installed beside slowpath."""
    return stripped(Path(SLOWPATH).with_name("slowpath-preload"), place)


def printed(*words: str | Path) -> dict[str, Any]:
    """What a command of slowpath prints as JSON."""
    done = subprocess.run([SLOWPATH, *words], stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout or "error" in (found := dict(json.loads(done.stdout))):
        raise RuntimeError(f"slowpath {words}: {done.stdout}")
    return found


def planned(program: Program, binary: Path, out: Path) -> Path:
    """The preload plan that a cold diagnosis of a binary gives."""
    plan = out.with_suffix(".plan")
    how = ["--cold", "--json", "--quiet", "--user", "nobody", "--blocks", "3", "--max-time", "15m", "--ready", program.ready, *HOME]
    printed("diagnose", *how, "-o", out, "--", binary, *program.words)
    subprocess.run([SLOWPATH, "preload", "plan", out, "-o", plan], check=True, stdout=sys.stderr)
    plan.chmod(0o644)
    return plan


def launched(program: Program, arms: dict[str, list[str]], blocks: int, metrics: list[str], *how: str) -> dict[str, Any]:
    """Launches of all arms."""
    words = [*how, "--json", "--quiet", "--user", "nobody", "--ready", program.ready, "--blocks", str(blocks), "--max-time", "1h", *HOME]
    for metric in metrics:
        words += ["--metric", metric]
    for name, command in arms.items():
        words += ["--arm", f"{name}={shlex.join(command)}"]
    return printed("launch", *words)
