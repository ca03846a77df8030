"""Pairs of contexts whose difference in speed has a known cause, or none: what there is, made from a seed.

Owns what a pair consists of, and which there are. Leaves to `bench/accept/host_activity` what must run or be mounted beside it, to
`make` building the programs, and every measurement to those who use it.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harmless import Difference, chosen

PROCESSOR = 1
"""Where hogs are, and what is beside them."""
NULL_DIFFERENCES = 10
PROGRAMS = ("in-context", "work", "hog", "guard.so")
NOBODY = 65534
OWNER = 61234
"""A user that nothing else here belongs to."""
PYTHON = "/usr/bin/python3"
"""Debian's own: another one may stand in a home directory that other users cannot enter."""


@dataclass
class Kind:
    """What a pair of one kind is made of."""

    command: list[str]
    causes: list[Difference] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    """What follows from the cause, so that it is no fault to name it."""
    common: list[str] = field(default_factory=list)
    """Steps of both sides."""
    without: tuple[str, ...] = ()
    """Harmless differences that would not be harmless here."""
    needs: dict[str, int] = field(default_factory=dict)
    """What `bench/accept/host_activity` must give: `hog_percent`, `quota_us` and `period_us`, `slow_disk_mib`."""


@dataclass
class Pair:
    """Two wrappers and a workload."""

    name: str
    kind: str
    place: Path
    """Where the programs are."""
    made_of: Kind
    differences: list[Difference]
    """The causes and the harmless ones, in the order in which they are set."""

    @property
    def causes(self) -> list[str]:
        """All that must be named; none where nothing costs time."""
        return [one.factor for one in self.differences if one.is_cause]

    def steps(self, is_slow: Callable[[Difference], bool]) -> list[str]:
        """The wrapper in which each difference has the side that is asked for."""
        steps = [*self.made_of.common, *(step for one in self.differences for step in one.steps(is_slow(one)))]
        # Whoever is another user may not do the rest any more.
        steps.sort(key=lambda step: step.startswith("user="))
        return [str(self.place / "in-context"), *steps, "--"]

    def fast(self) -> list[str]:
        """The fast wrapper."""
        return self.steps(lambda _: False)

    def slow(self) -> list[str]:
        """The slow one."""
        return self.steps(lambda _: True)

    def write(self, directory: Path, truths: Path) -> None:
        """fast.sh, slow.sh, the command (a word a line), and elsewhere what is true of them."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, words in (("fast.sh", self.fast()), ("slow.sh", self.slow())):
            script = directory / name
            script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            script.chmod(0o755)
        (directory / "command").write_text("".join(f"{word}\n" for word in self.made_of.command))
        truth = {
            "kind": self.kind,
            "causes": self.causes,
            "also": self.made_of.also,
            "harmless": [one.factor for one in self.differences if not one.is_cause],
        }
        truths.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Strings and lists of strings look the same in TOML.
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in truth.items()]
        lines += ["\n[needs]\n", *(f"{key} = {value}\n" for key, value in self.made_of.needs.items())]
        (truths / f"{self.name}.toml").write_text("".join(lines))


def cause(factor: str, slow: str, fast: str | None = None) -> Difference:
    """A difference that costs time, alone or with another."""
    return Difference(factor, (fast,) if fast else (), (slow,), is_cause=True)


class Maker:
    """Makes pairs in a directory, from a seed."""

    def __init__(self, place: Path, seed: int | str) -> None:
        """The same seed gives the same pairs."""
        self.place = place
        self.rng = random.Random(f"slowpath context {seed}")

    def work(self, *words: object) -> list[str]:
        """A workload of work.c."""
        return [str(self.place / "work"), *map(str, words)]

    def filters(self) -> Kind:
        """Stacked system call filters."""
        count = self.rng.randrange(6, 13)
        return Kind(self.work("calls", 400_000, 100), [cause("seccomp", f"filters={count}")])

    def mmap_threshold(self) -> Kind:
        """Blocks that are mapped each time."""
        value = self.rng.choice([32, 48, 64]) << 10
        tunable = cause("environment GLIBC_TUNABLES", f"env=GLIBC_TUNABLES=glibc.malloc.mmap_threshold={value}", "unset=GLIBC_TUNABLES")
        return Kind(self.work("blocks", 2500, 200_000, 1, 16_000), [tunable], without=("environment GLIBC",))

    def no_thread_cache(self) -> Kind:
        """Blocks that are taken from the arena each time."""
        tunable = cause("environment GLIBC_TUNABLES", "env=GLIBC_TUNABLES=glibc.malloc.tcache_count=0", "unset=GLIBC_TUNABLES")
        return Kind(self.work("blocks", 1_400_000, 256, 6), [tunable], without=("environment GLIBC",))

    def filled_blocks(self) -> Kind:
        """Blocks that are filled when they are given back."""
        variable = cause("environment MALLOC_PERTURB_", f"env=MALLOC_PERTURB_={self.rng.randrange(1, 255)}", "unset=MALLOC_PERTURB_")
        return Kind(self.work("blocks", 30_000, 3000, 20, 1400), [variable])

    def quota(self) -> Kind:
        """A quota of processor time."""
        period = self.rng.choice([10, 20, 40]) * 1000
        share = self.rng.uniform(0.15, 0.25)
        joined = cause("control_groups", f"group={self.place / 'group'}")
        return Kind(self.work("compute", 45_000_000), [joined], needs={"quota_us": round(period * share), "period_us": period})

    def idle(self) -> Kind:
        """What others leave of a processor."""
        return Kind(
            self.work("compute", 30_000_000),
            [cause("scheduling", "policy=idle")],
            common=[f"affinity={PROCESSOR}"],
            without=("nice", "io_priority"),
            needs={"hog_percent": self.rng.randrange(65, 80)},
        )

    def nice(self) -> Kind:
        """A smaller share of a processor, beside a hog in the same session."""
        return Kind(
            self.work("compute", 25_000_000),
            [cause("scheduling", f"nice={self.rng.randrange(5, 9)}")],
            common=[f"affinity={PROCESSOR}"],
            # Without a priority of its own, block I/O follows nice.
            without=("nice", "io_priority"),
            needs={"hog_percent": 100},
        )

    def naps(self) -> Kind:
        """Sleeps that end late."""
        slack = self.rng.randrange(300, 900) * 1000
        return Kind(self.work("naps", 900, 50_000), [cause("timer_slack_ns", f"slack={slack}")], without=("timer_slack_ns",))

    def preloaded(self) -> Kind:
        """A library that fills each block twice."""
        variable = cause("environment LD_PRELOAD", f"env=LD_PRELOAD={self.place / 'guard.so'}", "unset=LD_PRELOAD")
        return Kind(self.work("blocks", 800_000, 1500, 6), [variable], also=["loaded_libraries"])

    def traced(self) -> Kind:
        """A tracer that stops it at each system call."""
        return Kind(self.work("calls", 15_000, 4000), [cause("tracer", "traced")])

    def unreadable_cache(self) -> Kind:
        """Byte code that another user's Python cannot read."""
        first = self.rng.choice([0, OWNER])
        modules = self.place / f"modules-of-{first}"
        write_modules(modules, first, self.rng)
        fast = ("groups=", f"user={first}") if first else ()
        user = Difference("credentials", fast, ("groups=", f"user={NOBODY}"), is_cause=True)
        # Root reads by its capabilities what another user would be refused.
        also = [] if first else ["capabilities"]
        without = ("credentials", "capabilities", "environment TMPDIR", "oom", "no_new_privs", "cwd", "umask")
        return Kind([PYTHON, "-B", str(modules / "main.py")], [user], also=also, without=without)

    def small_pages(self) -> Kind:
        """Memory in small pages."""
        return Kind(self.work("huge", 12, 32), [cause("huge_pages", "thp=off")])

    def slow_disk(self) -> Kind:
        """A working directory on a file system that writes everything at once."""
        quick = self.place / "quick-disk"
        quick.mkdir(exist_ok=True)
        directory = cause("file_systems", f"cwd={self.place / 'slow-disk'}", f"cwd={quick}")
        return Kind(self.work("files", 15, 3_300_000), [directory], without=("cwd", "io_priority"), needs={"slow_disk_mib": 32})

    def nice_in_session(self) -> Kind:
        """A nice value that counts because the hog is in the same session."""
        return Kind(
            self.work("compute", 25_000_000),
            [Difference("autogroup", ("session",), (), is_cause=True), cause("scheduling", f"nice={self.rng.randrange(6, 10)}")],
            common=[f"affinity={PROCESSOR}"],
            without=("nice", "io_priority"),
            needs={"hog_percent": 100},
        )

    def slack_without_priority(self) -> Kind:
        """Slack that counts because the thread is no real-time thread."""
        slack = self.rng.randrange(400, 900) * 1000
        return Kind(
            self.work("naps", 1000, 100_000),
            [cause("timer_slack_ns", f"slack={slack}"), cause("scheduling", "policy=other", f"policy=fifo:{self.rng.randrange(1, 9)}")],
            without=("timer_slack_ns", "nice", "io_priority"),
        )

    def nothing(self) -> Kind:
        """No cause."""
        works = [("compute", 60_000_000), ("calls", 500_000, 100), ("blocks", 1_400_000, 256, 6), ("huge", 12, 32)]
        return Kind(self.work(*self.rng.choice(works)))

    def pair(self, kind: str, name: str) -> Pair:
        """One of a kind."""
        made = getattr(self, kind)()
        count = self.rng.randrange(4, 9) if made.causes else NULL_DIFFERENCES
        differences = [*made.causes, *chosen(self.place, self.rng, count, made.without)]
        self.rng.shuffle(differences)
        return Pair(name, kind, self.place, made, differences)

    def fourteen(self) -> list[Pair]:
        """Ten single causes, two interactions and two without a cause, in an order and under names that tell nothing."""
        kinds = [
            "filters", self.rng.choice(["mmap_threshold", "no_thread_cache", "filled_blocks"]), "quota", self.rng.choice(["idle", "nice"]),
            "naps", "preloaded", "traced", "unreadable_cache", "small_pages", "slow_disk",
            "nice_in_session", "slack_without_priority", "nothing", "nothing",
        ]
        self.rng.shuffle(kinds)
        return [self.pair(kind, f"pair-{number:02}") for number, kind in enumerate(kinds, 1)]


KINDS = (
    "filters", "mmap_threshold", "no_thread_cache", "filled_blocks", "quota", "idle", "nice", "naps", "preloaded", "traced",
    "unreadable_cache", "small_pages", "slow_disk", "nice_in_session", "slack_without_priority", "nothing",
)


def write_modules(directory: Path, owner: int, rng: random.Random) -> None:
    """A Python program of many modules whose byte code only `owner` can read."""
    directory.mkdir(exist_ok=True)
    names = [f"part_{number:02}" for number in range(40)]
    for name in names:
        functions = (
            f"def function_{at}(a, b, c={at}):\n"
            f"    found = [a * {rng.randrange(1000)} + b, c % {rng.randrange(1, 100)}]\n"
            "    for one in range(a):\n        if one > b and found:\n            found.append((one, b, c))\n"
            "    return {'found': found, 'sum': sum(x for x in found if isinstance(x, int))}\n"
            for at in range(30)
        )
        (directory / f"{name}.py").write_text("\n".join(functions))
    imports = "".join(f"import {name}\n" for name in names)
    (directory / "main.py").write_text(f"{imports}print(sum(one * one % 7 for one in range(1_000_000)))\n")
    subprocess.run([PYTHON, "-m", "compileall", "-q", str(directory)], check=True, stdin=subprocess.DEVNULL)
    cache = directory / "__pycache__"
    for path in [*cache.iterdir(), cache]:
        path.chmod(0o700 if path.is_dir() else 0o600)
        if owner:
            os.chown(path, owner, owner)
