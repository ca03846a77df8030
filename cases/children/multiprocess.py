"""Workers of multiprocessing, four at a time, started by METHOD (spawn, forkserver or fork), of which each imports MODULES.

    multiprocess.py METHOD [WORKERS]        8 of them
"""

import multiprocessing
import sys

MODULES = "argparse, decimal, email.mime.text, http.client, json, logging.config, unittest, xml.etree.ElementTree"


def work(number: int) -> int:
    """A task that imports what it needs."""
    exec(f"import {MODULES}")  # noqa: S102 - a list of names
    return number * number


if __name__ == "__main__":
    method, workers = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8
    with multiprocessing.get_context(method).Pool(4, maxtasksperchild=1) as pool:
        print(pool.map(work, range(workers), chunksize=1))
