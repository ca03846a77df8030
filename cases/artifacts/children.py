"""Starts CHILDREN processes one after the other, each of which imports the package beside this file, and prints `cpu_ms=`, the CPU
time of one of them, the mean.

    children.py CHILDREN [OPTION-OF-PYTHON...]
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

PLACE = Path(__file__).resolve().parent
IMPORTS = f"import sys; sys.path.insert(0, {str(PLACE)!r}); import shop.m0, shop.m1, shop.m2, shop.m3"

# Python saves what it compiles unless an option says otherwise.
environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
children = int(sys.argv[1])
for _ in range(children):
    subprocess.run([sys.executable, *sys.argv[2:], "-c", IMPORTS], env=environment, check=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"cpu_ms={(usage.ru_utime + usage.ru_stime) * 1e3 / children:.3f}")
