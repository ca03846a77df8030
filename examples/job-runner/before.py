"""Runs jobs as programs, four at a time: before.py COUNT."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

JOB = Path(__file__).with_name("jobs.py")


def run(number: int) -> str:
    done = subprocess.run([sys.executable, JOB, str(number)], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


with ThreadPoolExecutor(4) as pool:
    sys.stdout.writelines(pool.map(run, range(int(sys.argv[1]))))
