#!/usr/bin/python3
"""Blocks of memory in Python: images that are copied one after the other, and tables of rows.

    transient-python VARIANT [ROUNDS]

    each          a bytearray of 4 MiB for every round, mapped and unmapped every time
    kept          its twin: one bytearray that is filled in every round
    recycled      a bytearray for every round, which malloc keeps and gives out again
    rows          64 bytearrays of 100 KiB in every round: glibc gives the top of its heap back each time
    rows-kept     its twin: M_TRIM_THRESHOLD above all of it, so that the top stays

Prints one line: operations and pages of each, rows only with the minor faults after the first round, as the kernel counted
them; and the CPU time of all rounds in ms.
"""

from __future__ import annotations

import ctypes
import resource
import sys
import time

SIZE, ROW, ROWS, PAGE = 4 << 20, 100 << 10, 64, 4096
PR_SET_THP_DISABLE, M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = 41, -1, -3
IMAGE, LINE = bytes(range(256)) * (SIZE // 256), bytes(ROW)


def copy_image() -> int:
    """A block of its own."""
    return len(bytearray(IMAGE))


def make_rows() -> int:
    """Many blocks, each of its own."""
    return len([bytearray(LINE) for _ in range(ROWS)])


def minor_faults() -> int:
    """Those of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def main() -> int:
    """Runs the rounds."""
    variant = sys.argv[1] if len(sys.argv) > 1 else ""
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    if variant not in ("each", "kept", "recycled", "rows", "rows-kept"):
        print(__doc__, file=sys.stderr)
        return 2
    libc = ctypes.CDLL(None)
    # A page is 4 KiB, however the machine is set.
    libc.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
    # glibc's default learns from the first block that is freed; allocators of other systems do not.
    if variant in ("each", "kept"):
        libc.mallopt(M_MMAP_THRESHOLD, 128 << 10)
    if variant == "rows-kept":
        libc.mallopt(M_TRIM_THRESHOLD, 256 << 20)
    kept = memoryview(bytearray(SIZE)) if variant == "kept" else None
    begun, faults = time.process_time(), 0
    for number in range(rounds):
        if kept is not None:
            kept[:] = IMAGE
        elif variant.startswith("rows"):
            make_rows()
        else:
            copy_image()
        if number == 0:
            faults = minor_faults()
    used = (time.process_time() - begun) * 1e3
    operations, pages = 0, 0
    if variant == "each":
        # Behind the allocator's header a block reaches into one page more.
        operations, pages = rounds, rounds * (SIZE // PAGE + 1)
    elif variant == "rows":
        pages = minor_faults() - faults
    print(f"{variant} rounds={rounds} operations={operations} pages={pages} cpu_ms={used:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
