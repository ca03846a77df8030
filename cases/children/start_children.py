"""Starts CHILDREN processes, one after the other, and prints `cpu_ms=`, the CPU time of one of them, the mean.

    start_children.py executes CHILDREN            each runs python3 and imports MODULES
    start_children.py forks CHILDREN               the same, forked from this process, which has imported them
    start_children.py works CHILDREN WORKER MS     each runs WORKER, which works for MS on something of its own and then opens
                                                   a file that all open
    start_children.py same CHILDREN WORKER MS      the same with one command line for all
"""

import os
import resource
import subprocess
import sys

MODULES = "argparse, decimal, email.mime.text, http.client, json, logging.config, unittest, xml.etree.ElementTree"


def fork() -> None:
    """A child that has what this process has imported, and ends as a program does."""
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)


mode, children = sys.argv[1], int(sys.argv[2])
if mode == "forks":
    exec(f"import {MODULES}")  # noqa: S102 - a list of names, as `executes` gives it to python3 -c
for number in range(children):
    if mode == "forks":
        fork()
    elif mode == "executes":
        subprocess.run([sys.executable, "-c", f"import {MODULES}"], check=True)
    else:
        worker, ms = sys.argv[3:5]
        subprocess.run([worker, ms, str(number if mode == "works" else 0)], check=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"cpu_ms={(usage.ru_utime + usage.ru_stime) * 1e3 / children:.3f}")
