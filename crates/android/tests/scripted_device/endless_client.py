#!/usr/bin/python3
"""A client of adb for a device that sends without end, run as `endless_client.py -s DOES pull FROM TO`.

DOES is how it meets the limit of its file: it `removes` what it could not finish, as adb does, or `leaves` it; `asks` for the signal, which ends it;
or it `ends` exactly there, or `fails` before."""

import os
import signal
import sys


def main() -> int:
    """Writes until it may not."""
    _, _, does, _, _, to = sys.argv
    if does == "fails":
        print("adb: error: failed to stat remote object: No such file or directory", file=sys.stderr)
        return 1
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if does == "asks" else signal.SIG_IGN)
    os.unlink(to)
    with open(to, "wb", 0) as file:
        try:
            for _ in range(1000 if does == "ends" else 100_000):
                file.write(b"x")
        except OSError as error:
            print(f"adb: error: cannot write '{to}': {error.strerror}", file=sys.stderr)
            if does == "removes":
                os.unlink(to)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
