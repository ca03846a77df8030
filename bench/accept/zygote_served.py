"""A zygote that runs for an acceptance run, the memory cgroup that it runs in, and the module by which a run asks it for children."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SLOWPATH = os.environ.get("SLOWPATH", str(ROOT / "target/release/slowpath"))
HEADER = ROOT / "crates/zygote-c/include"
NAME = "libslowpath_zygote_c.so"
PATIENCE_S = 60.0

sys.path.insert(0, str(ROOT / "crates/zygote/python"))


def library() -> Path | None:
    """The library of C that Python loads: the one that is named, or that lies where `slowpath` looks for it."""
    named = os.environ.get("SLOWPATH_ZYGOTE_LIBRARY")
    beside = Path(SLOWPATH).resolve().parent
    places = [Path(named)] if named else [beside / NAME, beside.parent / "lib" / NAME, beside / "deps" / NAME]
    return next((place for place in places if place.exists()), None)


def eventually(is_so: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Waits until something is so, and gives what it is."""
    until = time.monotonic() + patience_s
    while not (found := is_so()):
        if time.monotonic() > until:
            raise TimeoutError(f"not within {patience_s:.0f} s: {what}")
        time.sleep(0.01)
    return found


def compiled(place: Path, name: str, code: str, *words: str) -> Path:
    """A shared library of C."""
    (place / f"{name}.c").write_text(code)
    made = place / f"{name}.so"
    words = (f"-I{HEADER}", *words)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", made, place / f"{name}.c", *words], check=True)
    return made


def children(pid: int) -> list[int]:
    """Processes whose parent it is."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descriptors(pid: int) -> int:
    """How many it has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def memory_kib(pid: int, kind: str) -> int:
    """`Rss` or `Pss` of a process (proc_pid_smaps(5)), KiB."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(f"{kind}:"))


class MemoryGroup:
    """A cgroup with a limit of memory, of v1 or v2, whichever has the controller here. It goes with its processes."""

    def __init__(self, name: str, limit: int) -> None:
        first = Path("/sys/fs/cgroup/memory")
        self.version = 1 if (first / "memory.limit_in_bytes").exists() else 2
        parent, self._limit = (first, "memory.limit_in_bytes") if self.version == 1 else (first.parent, "memory.max")
        self.path = parent / f"slowpath-{name}-{os.getpid()}"
        self.path.mkdir()
        self.limit(limit)

    def limit(self, limit: int) -> None:
        """Sets the limit in bytes."""
        (self.path / self._limit).write_text(str(limit))

    def used(self) -> int:
        """What is charged to it, bytes."""
        name = "memory.usage_in_bytes" if self.version == 1 else "memory.current"
        return int((self.path / name).read_text())

    def anonymous(self) -> int:
        """Anonymous memory of its processes, bytes."""
        name = "rss" if self.version == 1 else "anon"
        rows = (row.split() for row in (self.path / "memory.stat").read_text().splitlines())
        return next(int(value) for key, value in rows if key == name)

    def oom_kills(self) -> int:
        """Processes that the OOM killer took in it."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        rows = (row.split() for row in (self.path / name).read_text().splitlines())
        return next(int(value) for key, value in rows if key == "oom_kill")

    def processes(self) -> list[int]:
        """Those in it."""
        return [int(one) for one in (self.path / "cgroup.procs").read_text().split()]

    def takes(self, *command: str | Path, oom_score_adj: int = 0) -> list[str]:
        """The command line that runs a command in it, with its word for the OOM killer (proc_pid_oom_score_adj(5))."""
        steps = f'echo {oom_score_adj} > /proc/self/oom_score_adj && echo $$ > "$0" && exec "$@"'
        return ["/bin/sh", "-c", steps, str(self.path / "cgroup.procs"), *map(str, command)]

    def remove(self) -> None:
        """Ends what is in it, and removes it."""

        def is_gone() -> bool:
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)
            try:
                self.path.rmdir()
            except OSError:
                return False
            return True

        eventually(is_gone, f"{self.path} is removed")


@dataclass
class Served:
    """A zygote that runs."""

    process: subprocess.Popen[str]
    socket: Path

    def status(self) -> dict[str, Any]:
        """What `slowpath zygote status` says; empty while none answers."""
        words = [SLOWPATH, "zygote", "status", "--json", "--socket", str(self.socket)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=2 * PATIENCE_S)
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {}

    def zygote(self) -> int:
        """The process that preloaded and forks."""
        return int(eventually(self.status, "the zygote answers")["pid"])

    def stop(self) -> int:
        """Asks it to end; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_S)


@contextmanager
def served(
    place: Path,
    *words: str | Path,
    group: MemoryGroup | None = None,
    variables: Mapping[str, str] | None = None,
    user: str = "root",
) -> Iterator[Served]:
    """`slowpath zygote serve` with these words, by default as root; it ends with this."""
    socket = place / f"zygote-{time.monotonic_ns()}"
    command: list[str | Path] = [SLOWPATH, "zygote", "serve", "--quiet", "--user", user, "--socket", socket, *words]
    line = group.takes(*command) if group else [str(word) for word in command]
    process = subprocess.Popen(line, env={**os.environ, **(variables or {})}, stdin=subprocess.DEVNULL, stdout=sys.stderr, text=True)
    made = Served(process, socket)
    try:
        eventually(lambda: made.status() or process.poll() is not None, "the zygote is ready")
        if process.poll() is not None:
            raise RuntimeError(f"the zygote ended with {process.returncode}")
        yield made
    finally:
        if process.poll() is None:
            made.stop()
