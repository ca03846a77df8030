"""What happens in the virtual machines of layout-machines: programs run by themselves and traced."""

import os

from guest import command, tell

SLOWPATH = "/programs/slowpath"
PATIENCE_S = 600


def traced(run):
    """A program by itself, then traced: how both end and what they print, and the names in the trace."""
    trace = f"/tmp/{run['name']}.trace"
    alone = command(run["command"], PATIENCE_S)
    done = command([SLOWPATH, "layout", "trace", "--quiet", "--all-objects", "-o", trace, "--", *run["command"]], PATIENCE_S)
    with open(trace) as file:
        text = file.read()
    tell("traced", name=run["name"], alone=alone, done=done, trace=text)


def main(plan):
    """All of it."""
    tell("machine", kernel=os.uname().release, page_size=os.sysconf("SC_PAGE_SIZE"))
    for run in plan["runs"]:
        traced(run)
    tell("end")
