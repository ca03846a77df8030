"""Starts CHILDREN processes of a command one after the other and prints `cpu_ms=`, the CPU time of one of them, the mean.

    start.py CHILDREN COMMAND...
"""

import resource
import subprocess
import sys

children = int(sys.argv[1])
for _ in range(children):
    subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"cpu_ms={(usage.ru_utime + usage.ru_stime) * 1e3 / children:.3f}")
