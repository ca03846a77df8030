"""From a slice of the field to a command that makes such launches here.

Each condition of the field that this machine can make is one entry. What cannot be made is said, not left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

PLACEHOLDER = "PROGRAM"
TRUE = ("true", "yes", "1")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of launches: how field data name it, and what makes it here."""

    name: str
    holds: Callable[[str, str], bool]
    # Options of `slowpath diagnose`.
    options: tuple[str, ...] = ()
    # Launches find the artifacts in the state of a file that the user names.
    aged: bool = False
    # What remains to be done by hand, where options do not suffice; `None`: nothing.
    by_hand: Callable[[str], str] | None = None


def is_value(*words: str) -> Callable[[str, str], bool]:
    """The value is one of these words."""
    return lambda _column, value: value.lower() in words


def is_true(*columns: str) -> Callable[[str, str], bool]:
    """One of these columns is true."""
    return lambda column, value: column.lower() in columns and value.lower() in TRUE


def either(*tests: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    """Any of these."""
    return lambda column, value: any(test(column, value) for test in tests)


def in_column(column: str, *words: str) -> Callable[[str, str], bool]:
    """The column has one of these values; without words, any."""
    return lambda name, value: name.lower() == column and (not words or value.lower() in words)


def megabytes(value: str) -> int | None:
    """Size of memory that a text names: `2 GiB`, `512M`, `3g`."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*([mg])(i?b)?\s*", value.lower())
    return int(found[1]) * (1024 if found[2] == "g" else 1) if found else None


def with_memory(value: str) -> str:
    """How to bound the memory of a command and of what it starts (cgroup v2)."""
    return f"bound its memory: systemd-run --scope -p MemoryMax={megabytes(value) or 'N'}M COMMAND"


def with_cpus(value: str) -> str:
    """How to bound the CPUs of a command."""
    last = int(value) - 1 if value.isascii() and value.isdigit() and 0 < int(value) < 10_000 else "N"
    return f"run it on as many CPUs: taskset -c 0-{last} COMMAND"


CONDITIONS: tuple[Condition, ...] = (
    # A uid of its own sees other permissions than the program's owner.
    Condition("isolated", either(is_value("isolated"), is_true("isolated")), ("--user", "nobody")),
    Condition(
        "unreadable artifact",
        either(in_column("artifact", "unreadable", "denied"), in_column("outcome", "unreadable")),
        ("--user", "nobody"),
        aged=True,
    ),
    Condition("stale artifact", in_column("outcome", "stale", "missing"), aged=True),
    Condition("warm start", in_column("start", "warm", "hot"), ("--warm",)),
    Condition("cold start", in_column("start", "cold"), ("--cold",)),
    # Random reads of a disk that turns: 7,200 rpm and an arm give some 120 a second.
    Condition("hard disk", in_column("storage", "hdd", "rotating"), ("--iops", "120")),
    Condition("memory", in_column("ram"), by_hand=with_memory),
    Condition("CPUs", in_column("cpus"), by_hand=with_cpus),
)


def recipe(where: dict[str, str], program: str | None, state: str | None = None) -> tuple[str, list[str]]:
    """The command for a slice, and what it does not make.

    `state`: a file with the artifacts of such a machine, as `slowpath artifacts audit --json` printed there; launches
    find artifacts so.
    """
    options: list[str] = []
    notes = []
    aged = False
    for column, value in where.items():
        condition = next((one for one in CONDITIONS if one.holds(column, value)), None)
        if condition is None:
            notes.append(
                f"{column} = {value} cannot be made by an option: run it on such a machine if the gap is not seen here"
            )
            continue
        if condition.options and condition.options[0] not in options:
            options += condition.options
        if condition.by_hand is not None:
            notes.append(f"{column} = {value}: {condition.by_hand(value)}")
        aged = aged or condition.aged
    if "--warm" not in options and "--cold" not in options:
        # An isolated process is a child of a program that runs already: its files are in memory.
        options.insert(0, "--warm" if "--user" in options else "--cold")
    if "--warm" in options:
        # A warm diagnosis has no lab and so no device whose speed could be set.
        while "--iops" in options:
            at = options.index("--iops")
            del options[at : at + 2]
    command = ["slowpath", "diagnose", *options, "--", program or PLACEHOLDER]
    if state is not None:
        command = ["slowpath", "artifacts", "age", "--state", shlex.quote(state), "--user", "root", "--", *command]
    elif aged:
        notes.append(
            "to find artifacts as they are there: run `slowpath artifacts audit --json PATHS > FILE` on such a "
            "machine, and this with --state FILE"
        )
    return " ".join(command), notes
