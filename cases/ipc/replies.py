"""A program that asks another one over a unix socket, and how long the other one sleeps before it answers.

    replies.py both SOCKET REQUESTS DELAY_MS      starts a server, and asks it
    replies.py server SOCKET DELAY_MS             answers until it is killed
    replies.py client SOCKET REQUESTS GO          asks once the file GO is there

Each request is a line with a number; the reply is the time that the server slept for it, in ns. `both` and `client` print the sum of the
times slept, which is the truth that findings are held against. A server without a delay is the control.
"""

import os
import signal
import socket
import sys
import time
from pathlib import Path


def serve(path: str, delay_s: float) -> None:
    """Answers one client after the other."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen()
    while True:
        stream = listening.accept()[0].makefile("rw", encoding="ascii")
        for _ in stream:
            begin = time.monotonic_ns()
            if delay_s:
                time.sleep(delay_s)
            stream.write(f"{time.monotonic_ns() - begin}\n")
            stream.flush()


def connected(path: str) -> socket.socket:
    """A connection to the server, as soon as it listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    while True:
        try:
            connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.001)
        else:
            return connection


def ask(path: str, requests: int) -> None:
    """Asks, with some work of its own before each request."""
    slept = 0
    with connected(path) as connection, connection.makefile("rw", encoding="ascii") as stream:
        for number in range(requests):
            sum(range(50_000))
            stream.write(f"{number}\n")
            stream.flush()
            slept += int(stream.readline())
    print(slept, flush=True)


def main() -> None:
    """Runs what is asked for."""
    match sys.argv[1:]:
        case ["server", path, delay]:
            serve(path, float(delay) / 1e3)
        case ["client", path, requests, go]:
            while not Path(go).exists():
                time.sleep(0.01)
            ask(path, int(requests))
        case ["both", path, requests, delay]:
            server = os.fork()
            if server == 0:
                serve(path, float(delay) / 1e3)
            try:
                ask(path, int(requests))
            finally:
                os.kill(server, signal.SIGKILL)
                os.waitpid(server, 0)
        case _:
            raise SystemExit(__doc__)


main()
