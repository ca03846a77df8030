"""A directory for the files of a run, which goes with the run, also when that is asked to end; and what killed runs left behind.

Its name carries the owner's pid and start time. Nothing can be done when a run is killed with SIGKILL; the next one removes the
directories of those that are gone."""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PLACE = Path(os.environ.get("SLOWPATH_SCRATCH", "/var/tmp"))
NAME = re.compile(r"slowpath-accept-.+-(?P<pid>\d+)-(?P<start>\d+)\.\d+")
ASKS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# prctl(2): orphans below become children of this process.
PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 10
_numbers = itertools.count()


def _stat(pid: int | str) -> list[str]:
    """What follows the name in /proc/PID/stat: state, parent, ...; empty where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def started(pid: int | str) -> str:
    """When a process began, in ticks since boot."""
    return next(iter(_stat(pid)[19:20]), "")


def sweep(place: Path = PLACE) -> None:
    """Removes directories of runs that are gone: this user's, or as root everybody's."""
    for path in place.glob("slowpath-accept-*"):
        name = NAME.fullmatch(path.name)
        if not name or path.is_symlink() or not path.is_dir() or os.geteuid() not in (0, path.stat().st_uid):
            continue
        if started(name["pid"]) != name["start"]:
            shutil.rmtree(path, ignore_errors=True)


def _end_on_signals(run: str) -> dict[signal.Signals, Any]:
    """A signal that asks to end ends by way of every `finally`, and the run says so; one that is ignored, as below nohup, stays so.
    Returns what the signals did before."""

    def asked(number: int, _frame: object) -> None:
        for other in ASKS:
            signal.signal(other, signal.SIG_IGN)
        print(f"{run}: ended by {signal.Signals(number).name}", file=sys.stderr)
        raise SystemExit(128 + number)

    return {number: signal.signal(number, asked) for number in ASKS if signal.getsignal(number) != signal.SIG_IGN}


def _end_children() -> None:
    """Ends what was started and runs still, with what that started: a program that outlives its recorder, for example."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        children = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _stat(pid)[1:2] == [str(os.getpid())]]
        if not children:
            return
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


@contextmanager
def scratch(run: str, mode: int = 0o700, place: Path = PLACE) -> Iterator[Path]:
    """The directory, in `place`. A signal that asks to end ends by way of every `finally`, with what was started."""
    sweep(place)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = _end_on_signals(run)
    path = place / f"slowpath-accept-{run}-{os.getpid()}-{started(os.getpid())}.{next(_numbers)}"
    try:
        path.mkdir(mode=0o700)
        path.chmod(mode)
        yield path
    except BaseException:
        _end_children()
        raise
    finally:
        shutil.rmtree(path, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)
