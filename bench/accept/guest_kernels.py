"""Records programs with known workloads in a VM of another kernel, and analyzes the recordings."""

import json
import os
import subprocess
import time

from guest import command, tell

SLOWPATH = "/programs/slowpath"
PATIENCE_S = 300


def analyzed(recording):
    """What `analyze` says of a recording, or why nothing."""
    done = command([SLOWPATH, "analyze", "--json", recording], PATIENCE_S)
    return json.loads(done["out"]) if done["code"] == 0 else done["err"]


def recorded(run):
    """One recording of a command, or of one that runs already."""
    out = f"/tmp/{run['name'].replace(' ', '-')}"
    words = [SLOWPATH, "record", "--json", "--quiet", *run["options"], "-o", out]
    environment = {**os.environ, **run["environment"]}
    if run["attach"]:
        target = subprocess.Popen(run["command"], env=environment, stdout=subprocess.DEVNULL)
        time.sleep(1)
        done = command([*words, "--pid", str(target.pid), "--duration", "2"], PATIENCE_S)
        target.kill()
        target.wait()
    else:
        environment = [word for name, value in run["environment"].items() for word in ("--env", f"{name}={value}")]
        done = command([*words, *environment, "--", *run["command"]], PATIENCE_S)
    tell("recorded", name=run["name"], **done, analysis=analyzed(out) if done["code"] == 0 else None)


def main(plan):
    """All of it."""
    doctor = command([SLOWPATH, "doctor", "--json"], PATIENCE_S)
    tell("machine", kernel=os.uname().release, page_size=os.sysconf("SC_PAGE_SIZE"), doctor=doctor)
    for run in plan["runs"]:
        recorded(run)
    tell("end")
