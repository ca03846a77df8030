"""What a product runs at its own start: can the users who need them use its compiled and cached files?

    import slowpath_guard
    report = slowpath_guard.check("/etc/shop/guard.toml", repair=True)
    for line in report.lines:
        histogram.count(line["outcome"])

One file without dependencies. It loads libslowpath_guard_c.so from SLOWPATH_GUARD_LIBRARY, or where the system's
dynamic loader finds it. Python 3.11 or later. Documentation: docs/guard.md.
"""

from __future__ import annotations

import ctypes
import json
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

__all__ = ["GuardError", "Outcome", "Report", "check"]

_REPAIR = 1


class Outcome(StrEnum):
    """What is counted of a file for a user; `slowpath explain NAME` says what each means."""

    NOT_NEEDED = "not_needed"
    USABLE = "usable"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    STALE = "stale"
    REPAIRED = "repaired"
    REPAIR_FAILED = "repair_failed"
    UNKNOWN = "unknown"


class GuardError(Exception):
    """There is no result: the policy is wrong or refused (code 2), or this machine cannot (code 3)."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Report:
    """What a start found."""

    code: int
    """0: all is fine. 1: something cannot be used or decided. 3: a repair was asked for and may not be run."""
    lines: list[dict[str, Any]]
    """One for each file and user, as docs/schemas/guard-line.json has it."""

    @property
    def outcomes(self) -> list[Outcome]:
        """What is counted, line by line."""
        return [Outcome(line["outcome"]) for line in self.lines]


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ.get("SLOWPATH_GUARD_LIBRARY", "libslowpath_guard_c.so"))
    text = ctypes.POINTER(ctypes.c_void_p)
    library.slowpath_guard_check.argtypes = [ctypes.c_char_p, ctypes.c_uint, ctypes.c_char_p, text, text]
    library.slowpath_guard_check.restype = ctypes.c_int
    library.slowpath_guard_free.argtypes = [ctypes.c_void_p]
    library.slowpath_guard_free.restype = None
    return library


def _taken(library: ctypes.CDLL, text: ctypes.c_void_p) -> str | None:
    if text.value is None:
        return None
    try:
        return ctypes.string_at(text.value).decode()
    finally:
        library.slowpath_guard_free(text)


def check(policy: str | os.PathLike[str], *, repair: bool = False, user: str | None = None) -> Report:
    """Checks the artifacts of a policy for the users who need them.

    With `repair` the commands of the policy are run, each at most once a version; nothing is changed without. `user` is
    the product's own pseudonym of its user, which the lines have as "user". Raises GuardError where there is no result,
    and OSError where there is no library.
    """
    library = _load()
    lines, error = ctypes.c_void_p(), ctypes.c_void_p()
    path = os.fsencode(Path(policy))
    name = None if user is None else user.encode()
    if b"\0" in path or (name is not None and b"\0" in name):
        raise GuardError(2, "a null byte ends a string of C")
    flags = _REPAIR if repair else 0
    code = int(library.slowpath_guard_check(path, flags, name, ctypes.byref(lines), ctypes.byref(error)))
    text, why = _taken(library, lines), _taken(library, error)
    if text is None:
        raise GuardError(code, why or "there is no reason")
    return Report(code, [json.loads(line) for line in text.splitlines()])
