"""Errors of the commands: what failed, on what, why, and what to do, in that order."""

from __future__ import annotations

# Exit codes, the same as those of `slowpath`.
DONE = 0
VERDICT_FAILED = 1
WRONG_USAGE = 2
CANNOT = 3
# As of a program that SIGINT ended.
INTERRUPTED = 130


class FleetError(Exception):
    """An error that a user can act on.

    `what` failed on `subject` because of `why`; `remedy` says what to do. `code` is the exit code.
    """

    def __init__(self, what: str, subject: str, why: str, remedy: str, code: int) -> None:
        super().__init__(f"{what}: {subject}: {why}; {remedy}" if subject else f"{what}: {why}; {remedy}")
        self.what, self.subject, self.why, self.remedy, self.code = what, subject, why, remedy, code


def wrong_usage(what: str, subject: str, why: str, remedy: str) -> FleetError:
    """The request makes no sense for these data (exit code 2)."""
    return FleetError(what, subject, why, remedy, WRONG_USAGE)


def cannot(what: str, subject: str, why: str, remedy: str) -> FleetError:
    """This machine or this engine cannot do it (exit code 3)."""
    return FleetError(what, subject, why, remedy, CANNOT)
