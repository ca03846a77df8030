#!/usr/bin/python3
"""The first process of a virtual machine: mounts what every program expects, does what the plan's module does, and switches the machine off.

Alone in the machine with the modules beside it, and whatever else is in its RAM disk."""

import ctypes
import importlib
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
POWER_OFF = 0x4321FEDC
"""`LINUX_REBOOT_CMD_POWER_OFF` (include/uapi/linux/reboot.h)."""
FINIT_MODULE = {"x86_64": 313, "aarch64": 273}
"""Number of the system call."""
EVERYWHERE = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/dev/shm"), ("tracefs", "/sys/kernel/tracing"))
LINE = os.environ["SLOWPATH_LINE"]
"""Named on the kernel's command line."""


def mount(kind, where):
    """As mount(2), of a file system without a device."""
    Path(where).mkdir(parents=True, exist_ok=True)
    if LIBC.mount(b"none", where.encode(), kind.encode(), 0, b""):
        raise OSError(ctypes.get_errno(), f"{kind} on {where}")


def insert(module, options=""):
    """Loads a module of the kernel."""
    with open(module, "rb") as file:
        if LIBC.syscall(FINIT_MODULE[os.uname().machine], file.fileno(), options.encode(), 0):
            raise OSError(ctypes.get_errno(), module)


def tell(kind, **words):
    """A line for the machine outside."""
    with open(LINE, "a", encoding="utf-8") as line:
        line.write(json.dumps({"kind": kind, **words}) + "\n")


def command(words, patience_s, **options):
    """What a program printed."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience_s, **options)
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def main():
    """From the first mount to the end."""
    for kind, where in EVERYWHERE:
        mount(kind, where)
    plan = json.loads(Path("/plan.json").read_text())
    importlib.import_module(plan["does"]).main(plan)


if __name__ == "__main__":
    # The modules take what they need from this one by its name.
    sys.modules["guest"] = sys.modules["__main__"]
    os.environ.update(PATH="/usr/bin:/bin", HOME="/root")
    try:
        main()
    except BaseException:
        text = traceback.format_exc()
        print(text, file=sys.stderr)
        tell("failed", text=text)
    finally:
        os.sync()
        LIBC.reboot(POWER_OFF)
