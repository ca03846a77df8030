"""What happens in the virtual machines with binder: the driver is loaded, and `slowpath ipc` measures it."""

import os

from guest import command, insert, tell

SLOWPATH = "/programs/slowpath"
PATIENCE_S = 600


def main(plan):
    """All of it."""
    insert("/modules/binder_linux.ko", plan["options"])
    devices = sorted(name for name in os.listdir("/dev") if name.startswith("binder"))
    tell("machine", kernel=os.uname().release, devices=devices, cpus=sorted(os.sched_getaffinity(0)))
    for run in plan["runs"]:
        cpus = run["cpus"] or os.sched_getaffinity(0)
        done = command([SLOWPATH, "ipc", *run["words"]], PATIENCE_S, preexec_fn=lambda cpus=cpus: os.sched_setaffinity(0, cpus))
        tell("ran", name=run["name"], **done)
    left = [name for name in os.listdir("/sys/kernel/tracing/instances") if name.startswith("slowpath")]
    tell("end", left=left)
