"""Differences between two contexts that cost the workloads of this directory nothing. They are real: most of them can be read in the
process, and some look like causes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Difference:
    """What one context has and the other has not, as steps of `in-context`."""

    factor: str
    """The factor of slowpath's that it belongs to, with its part where there is one; `none` where slowpath reads none."""
    fast: tuple[str, ...]
    slow: tuple[str, ...]
    is_cause: bool = False

    def steps(self, is_slow: bool) -> tuple[str, ...]:
        """Those of a side."""
        return self.slow if is_slow else self.fast


def harmless(place: Path, rng: random.Random) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """All that there are: factor, steps with it and steps without it."""
    settings = "x" * rng.randrange(20, 400)
    return [
        ("environment LANG", ("env=LANG=C.UTF-8",), ("env=LANG=C",)),
        ("environment LC_TIME", ("env=LC_TIME=C.UTF-8",), ("unset=LC_TIME",)),
        ("environment TZ", (f"env=TZ={rng.choice(['UTC', 'Europe/Rome', 'Asia/Tokyo'])}",), ("unset=TZ",)),
        ("environment TMPDIR", (f"env=TMPDIR={place}",), ("unset=TMPDIR",)),
        ("environment bytes of all", (f"env=APP_SETTINGS={settings}",), ("unset=APP_SETTINGS",)),
        # One thread has one arena, whatever their limit.
        ("environment MALLOC_ARENA_MAX", (f"env=MALLOC_ARENA_MAX={rng.choice([2, 4, 8])}",), ("unset=MALLOC_ARENA_MAX",)),
        # The number of link namespaces is that of dlmopen's users.
        ("environment GLIBC_TUNABLES", ("env=GLIBC_TUNABLES=glibc.rtld.nns=5",), ("unset=GLIBC_TUNABLES",)),
        ("limits open_files", (f"limit=nofile:{rng.choice([512, 768])}",), ()),
        ("limits core_file_size", (f"limit=core:{rng.randrange(1, 9) << 20}",), ()),
        ("limits pending_signals", (f"limit=sigpending:{rng.randrange(500, 5000)}",), ()),
        ("limits msgqueue_size", (f"limit=msgqueue:{rng.randrange(100, 800) << 10}",), ()),
        ("io_priority", (f"ioprio=2:{rng.randrange(5, 8)}",), ()),
        ("credentials groups", (f"groups=0,{rng.randrange(60000, 65000)}",), ("groups=0",)),
        ("timer_slack_ns", (f"slack={rng.randrange(60, 90) * 1000}",), ()),
        ("no_new_privs", ("no-new-privs",), ()),
        # CAP_SYS_BOOT, CAP_LEASE, CAP_WAKE_ALARM.
        ("capabilities", (f"bounding=-{rng.choice([22, 28, 35])}",), ()),
        ("namespaces", ("uts",), ()),
        ("none", ("umask=027",), ("umask=022",)),
        ("none", (f"oom={rng.randrange(10, 300)}",), ()),
        ("none", (f"cwd={place}",), ("cwd=/",)),
        ("none", ("nice=0",), ()),
    ]


def chosen(place: Path, rng: random.Random, count: int, without: tuple[str, ...]) -> list[Difference]:
    """Some of them, each on one of both sides; none whose factor begins as a word of `without` or whose steps do."""
    fitting = [one for one in harmless(place, rng) if not any(one[0].startswith(word) or one[1][0].startswith(word) for word in without)]
    found = []
    for factor, with_it, without_it in rng.sample(fitting, min(count, len(fitting))):
        fast, slow = (with_it, without_it) if rng.random() < 0.5 else (without_it, with_it)
        found.append(Difference(factor, fast, slow))
    return found
