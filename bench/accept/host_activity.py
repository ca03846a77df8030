"""What runs, is mounted or is limited beside a pair: hogs, a cgroup with a quota, a slow disk. All of it ends with whoever asked
for it, also when that one is killed; an empty cgroup can stay then, and the next run removes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import context_launches  # noqa: F401  (finds what follows)
from pairs import PROCESSOR
from scratch import started

PREFIX = "slowpath-pairs-"
PRIVATE = "SLOWPATH_PAIRS_MOUNTS"
"""Set in a process that has mounts of its own."""
PATIENCE_S = 5.0


class Unavailable(Exception):
    """What this machine cannot give: why, and what helps."""


def private_mounts() -> None:
    """Goes on with mounts that nobody else sees and that end with this process; executes the program anew for it."""
    if os.environ.pop(PRIVATE, None):
        return
    words = ["unshare", "--mount", "--propagation", "private", "--", sys.executable, *sys.argv]
    os.execvpe("unshare", words, {**os.environ, PRIVATE: "1"})


def own_name() -> str:
    """A beginning of names that tells whose a cgroup is."""
    return f"{PREFIX}{os.getpid()}-{started(os.getpid())}-"


def is_left(path: Path) -> bool:
    """Whether a cgroup belongs to nobody alive."""
    pid, _, rest = path.name.removeprefix(PREFIX).partition("-")
    return path.name.startswith(PREFIX) and pid.isdigit() and started(int(pid)) != rest.partition("-")[0]


def groups() -> tuple[Path, bool]:
    """Where the cpu controller is mounted, and whether as cgroup v2."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            return Path(where), False
        if kind == "cgroup2" and "cpu" in (Path(where) / "cgroup.subtree_control").read_text().split():
            return Path(where), True
    raise Unavailable("the cpu controller is not mounted; mount -t cgroup -o cpu cgroup /sys/fs/cgroup/cpu")


@contextmanager
def quota(link: Path, quota_us: int, period_us: int) -> Iterator[None]:
    """A cgroup with a quota, which `link` leads to."""
    root, is_second = groups()
    for left in filter(is_left, root.iterdir()):
        try:
            left.rmdir()
        except OSError as error:
            print(f"{left}: {error}", file=sys.stderr)
    group = root / f"{own_name()}{link.name}"
    group.mkdir()
    try:
        if is_second:
            (group / "cpu.max").write_text(f"{quota_us} {period_us}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(period_us))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        link.symlink_to(group)
        yield
    finally:
        link.unlink(missing_ok=True)
        removed(group)


def removed(group: Path) -> None:
    """Ends what is still in a group and removes it."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            group.rmdir()
            return
        except OSError:
            if time.monotonic() > end:
                raise
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.02)


@contextmanager
def hog(program: Path, percent: int) -> Iterator[None]:
    """Takes a part of a CPU."""
    process = subprocess.Popen([str(program), str(os.getpid()), str(PROCESSOR), str(percent)], stdin=subprocess.DEVNULL)
    try:
        time.sleep(0.05)
        if process.poll() is not None:
            raise Unavailable(f"the hog ended with {process.returncode}; it needs processor {PROCESSOR}")
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def slow_disk(where: Path, mib: int) -> Iterator[None]:
    """A file system that writes everything at once, on a loop device."""
    image = where.with_suffix(".image")
    with image.open("wb") as file:
        file.truncate(mib << 20)
    done = subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], capture_output=True, text=True, check=False)
    where.mkdir(exist_ok=True)
    if not done.returncode:
        # The device ends with the mount, and that with the last process that sees it.
        words = ["mount", "-o", "loop,sync,dirsync", str(image), str(where)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"no slow disk: {done.stderr.strip()}")
    where.chmod(0o777)
    try:
        yield
    finally:
        for options in ([], ["--lazy"]):
            if not subprocess.run(["umount", *options, str(where)], check=False, stderr=subprocess.DEVNULL).returncode:
                break
        image.unlink()


@contextmanager
def around(directory: Path, needs: dict[str, int]) -> Iterator[None]:
    """All that a pair needs, where its programs are."""
    with ExitStack() as stack:
        if "quota_us" in needs:
            stack.enter_context(quota(directory / "group", needs["quota_us"], needs["period_us"]))
        if "other_quota_us" in needs:
            stack.enter_context(quota(directory / "other-group", needs["other_quota_us"], needs["period_us"]))
        if "slow_disk_mib" in needs:
            stack.enter_context(slow_disk(directory / "slow-disk", needs["slow_disk_mib"]))
        if "hog_percent" in needs:
            stack.enter_context(hog(directory / "hog", needs["hog_percent"]))
        yield
