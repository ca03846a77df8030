"""What watches a launch from outside, the same for all recorders: the call of the page's first script, and a control
group that counts the CPU time of the launched tree (where this machine has one)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGE = b"<!doctype html><title>record-cost</title><p>launch</p><script>fetch('/first-script')</script>"
CPUACCT = Path("/sys/fs/cgroup/cpuacct")
PREFIX = "record-cost-"


class CpuAccount:
    """A cpuacct cgroup for one launch; it carries its owner's pid, and those of dead owners are removed."""

    def __init__(self) -> None:
        self.directory: Path | None = None
        if not (CPUACCT / "cpuacct.usage").is_file():
            return
        for old in CPUACCT.glob(f"{PREFIX}*"):
            if not Path("/proc", old.name.removeprefix(PREFIX)).exists():
                remove(old)
        self.directory = CPUACCT / f"{PREFIX}{os.getpid()}"
        self.directory.mkdir(exist_ok=True)

    def tasks(self) -> str:
        """The file that takes tasks in; "-" for none."""
        return str(self.directory / "tasks") if self.directory else "-"

    def members(self) -> set[int]:
        """Processes that are in it."""
        if not self.directory:
            return set()
        return {int(pid) for pid in (self.directory / "cgroup.procs").read_text(encoding="ascii").split()}

    def used_ms(self) -> float | None:
        """CPU time used by all tasks that were in it."""
        if not self.directory:
            return None
        return int((self.directory / "cpuacct.usage").read_text(encoding="ascii")) / 1e6

    def close(self) -> None:
        """Removes it, when its last task is gone."""
        if self.directory:
            remove(self.directory)


def remove(group: Path) -> None:
    """Removes a cgroup; its tasks may take a moment to end."""
    for _ in range(100):
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)


class Observer:
    """A page on loopback whose first script calls back; the time of that call, taken the same way for all."""

    def __init__(self, at_call: Callable[[], float | None]) -> None:
        self.called_ns = 0
        self.at_call: float | None = None
        self.called = threading.Event()
        observer = self

        class Handler(BaseHTTPRequestHandler):
            """Serves the page and takes the time of its script's call."""

            def do_GET(self) -> None:
                """Answers a request."""
                now = time.monotonic_ns()
                if self.path == "/first-script" and not observer.called.is_set():
                    observer.called_ns = now
                    observer.at_call = at_call()
                    observer.called.set()
                body = PAGE if self.path == "/" else b""
                self.send_response(200 if self.path in ("/", "/first-script") else 404)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stops serving."""
        self.server.shutdown()
        self.server.server_close()
