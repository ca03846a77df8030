"""From a slice of the field to a command that makes such launches here.

Each condition of the field that this machine can make is one entry. What cannot be made is said, not left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

PLACEHOLDER = "PROGRAM"
TRUE = ("true", "yes", "1")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of launches: how field data name it, and the options of `slowpath diagnose` that make it."""

    name: str
    holds: Callable[[str, str], bool]
    options: tuple[str, ...]
    # What remains to be done by hand, where options do not suffice.
    by_hand: str | None = None


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


CONDITIONS: tuple[Condition, ...] = (
    # A uid of its own sees other permissions than the program's owner.
    Condition("isolated", either(is_value("isolated"), is_true("isolated")), ("--user", "nobody")),
    Condition("unreadable artifact", in_column("artifact", "unreadable", "denied"), ("--user", "nobody")),
    Condition("warm start", in_column("start", "warm", "hot"), ("--warm",)),
    Condition("cold start", in_column("start", "cold"), ("--cold",)),
    # Random reads of a disk that turns: 7,200 rpm and an arm give some 120 a second.
    Condition("hard disk", in_column("storage", "hdd", "rotating"), ("--iops", "120")),
    Condition(
        "memory",
        in_column("ram"),
        (),
        "set memory.max of the cgroup that the command runs in to what the program gets on such a device",
    ),
)


def recipe(where: dict[str, str], program: str | None) -> tuple[str, list[str]]:
    """The command for a slice, and the conditions that it does not make."""
    options: list[str] = []
    notes = []
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
            notes.append(f"{column} = {value}: {condition.by_hand}")
    if "--warm" not in options and "--cold" not in options:
        options.insert(0, "--cold")
    if "--warm" in options:
        # A warm diagnosis has no lab and so no device whose speed could be set.
        while "--iops" in options:
            at = options.index("--iops")
            del options[at : at + 2]
    return " ".join(["slowpath", "diagnose", *options, "--", program or PLACEHOLDER]), notes
