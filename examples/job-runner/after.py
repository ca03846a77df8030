"""Runs jobs as children of a zygote, four at a time: after.py COUNT."""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import slowpath_zygote


def serve(socket: str) -> None:
    import jobs

    slowpath_zygote.serve(socket, jobs.main)


def run(socket: Path, number: int) -> str:
    reader, writer = os.pipe()
    with slowpath_zygote.spawn(socket, [str(number)], fds={1: writer}) as child:
        os.close(writer)
        with os.fdopen(reader) as output:
            text = output.read()
        if child.wait() != 0:
            raise RuntimeError(f"job {number} failed")
    return text


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        socket = Path(place) / "zygote"
        zygote = subprocess.Popen([sys.executable, __file__, "--serve", socket])
        try:
            while not socket.exists():
                if zygote.poll() is not None:
                    raise RuntimeError("the zygote did not start")
                time.sleep(0.002)
            with ThreadPoolExecutor(4) as pool:
                sys.stdout.writelines(pool.map(lambda number: run(socket, number), range(count)))
        finally:
            zygote.terminate()
            zygote.wait()


if sys.argv[1] == "--serve":
    serve(sys.argv[2])
else:
    main(int(sys.argv[1]))
