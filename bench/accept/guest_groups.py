"""What runs in the virtual machine of cgroup-v2: makes cgroups, runs the checks in them, and reports the results."""

import os
import subprocess
import time
from pathlib import Path

from guest import command, insert, mount, tell

GROUPS = Path("/sys/fs/cgroup")


def limited(name, limits):
    """A group below the root with what `limits` says."""
    group = GROUPS / name
    group.mkdir()
    for file, text in limits.items():
        (group / file).write_text(text)
    return group


def inside(group):
    """Joins a group before a program is executed."""
    return lambda: (group / "cgroup.procs").write_text("0")


def tests(plan):
    """The tests of the workspace that need cgroup v2."""
    for program in plan["tests"]:
        done = command([program, "--test-threads", "1"], 600)
        tell("tests", name=Path(program).name, **done)


def shown(plan, device):
    """What `context show` reads of limits that are known, with a level that has none of the controllers between."""
    limits = {file: text.replace("DEVICE", device) for file, text in plan["shown"].items()}
    if not limits:
        return
    group = limited("shown", limits)
    below = group / "below"
    below.mkdir()
    for where in (group, below):
        sleeper = subprocess.Popen(["/bin/sleep", "1000"], preexec_fn=inside(where))
        # Until it has executed.
        while Path(f"/proc/{sleeper.pid}/comm").read_text().strip() != "sleep":
            time.sleep(0.01)
        tell("shown", name=str(where), **command(["/programs/slowpath", "context", "show", "--json", str(sleeper.pid)], 60))
        sleeper.kill()
        sleeper.wait()


def bisected(plan, device):
    """Which limit `context bisect` names."""
    for number, pair in enumerate(plan["pairs"]):
        sides = []
        for side in ("fast", "slow"):
            limits = {file: text.replace("DEVICE", device) for file, text in pair[side].items()}
            group = limited(f"pair-{number}-{side}", limits)
            # First: joining a group with processors gives all of them, before Linux 6.2 also to who had chosen some.
            sides += [f"--{side}", f"/programs/in-context group={group} {' '.join(pair['steps'])} --"]
        hogs = []
        if pair["hog"]:
            around = limited(f"hog-{number}", {})
            hogs = [subprocess.Popen(["/programs/hog", str(os.getpid()), "0", "100"], preexec_fn=inside(around))]
        began = time.monotonic()
        words = ["/programs/slowpath", "context", "bisect", "--json", "--quiet", "--max-time", pair["time"], *sides, "--", *pair["command"]]
        tell("bisected", name=pair["name"], **command(words, 600), took_s=time.monotonic() - began)
        for one in hogs:
            if one.poll() is not None:
                tell("failed", text=f"the hog ended with {one.returncode}")
            one.kill()
            one.wait()


def main(plan):
    """All of it."""
    for module in plan["modules"]:
        insert(module)
    until = time.monotonic() + 20
    while not Path("/dev/vda").exists() and time.monotonic() < until:
        time.sleep(0.05)
    mount("cgroup2", str(GROUPS))
    # What the groups limit must be in them: the root's own controllers.
    (GROUPS / "cgroup.subtree_control").write_text("+cpu +cpuset +io +memory +hugetlb")
    number = os.stat("/dev/vda").st_rdev
    device = f"{os.major(number)}:{os.minor(number)}"
    controllers = (GROUPS / "cgroup.controllers").read_text().strip()
    tell("machine", kernel=os.uname().release, controllers=controllers, device=device)
    tests(plan)
    shown(plan, device)
    bisected(plan, device)
    left = [str(path) for path in GROUPS.iterdir() if path.is_dir() and not path.name.startswith(("pair-", "hog-", "shown"))]
    tell("end", left=left)
