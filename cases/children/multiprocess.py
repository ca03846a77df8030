"""Four workers of multiprocessing, started by METHOD (spawn, forkserver or fork), of which each imports MODULES, or those that are named.

multiprocess.py METHOD [MODULE...]
"""

import multiprocessing
import sys

MODULES = "argparse, decimal, email.mime.text, http.client, json, logging.config, unittest, xml.etree.ElementTree"


def work(number: int) -> int:
    """A task that imports what it needs."""
    exec(f"import {', '.join(sys.argv[2:]) or MODULES}")  # noqa: S102 - a list of names
    return number * number


if __name__ == "__main__":
    method = sys.argv[1]
    with multiprocessing.get_context(method).Pool(4, maxtasksperchild=1) as pool:
        print(pool.map(work, range(8), chunksize=1))
