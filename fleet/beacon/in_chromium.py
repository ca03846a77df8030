"""Beacons of real page views: serves pages with slowpath-beacon.js on loopback, visits them in a headless Chromium, and
writes what the browser sends.

    beacon/in_chromium.py OUTPUT.jsonl [--visits 5] [--browser chromium] [--slow MS]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("slowpath-beacon.js")
# Without a delay, so that the script has to wait for the paint.
PAGE = """<!doctype html><html><head><title>beacon</title></head><body><h1>A page</h1>
<script src="/slowpath-beacon.js" data-endpoint="/beacon" data-delay="0" data-user="visitor-{visit}"
 data-version="{version}" async></script></body></html>"""
# A beacon is small; what is larger is none.
LARGEST = 64 << 10
SECONDS = 60


class Collector(ThreadingHTTPServer):
    """Serves the page and keeps the beacons."""

    def __init__(self, slow: float) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        # Seconds that every second visit waits for its page.
        self.slow = slow
        self.beacons: list[dict[str, Any]] = []
        self.arrived = threading.Event()


class Handler(BaseHTTPRequestHandler):
    """GET: the page of a visit, the script. POST: a beacon."""

    server: Collector

    def do_GET(self) -> None:
        """The page of a visit, or the script."""
        if self.path == "/slowpath-beacon.js":
            self.answer(SCRIPT.read_bytes(), "text/javascript")
        elif self.path.startswith("/visit/") and self.path[7:].isdigit():
            visit = int(self.path[7:])
            if visit % 2:
                time.sleep(self.server.slow)
            self.answer(PAGE.format(visit=visit, version=1 + visit % 2).encode(), "text/html")
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        """A beacon."""
        size = int(self.headers.get("Content-Length", "0"))
        if self.path != "/beacon" or not 0 < size <= LARGEST:
            self.send_error(400)
            return
        self.server.beacons.append(json.loads(self.rfile.read(size)))
        self.send_response(204)
        self.end_headers()
        self.server.arrived.set()

    def answer(self, content: bytes, kind: str) -> None:
        """A whole answer."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


def visit(browser: str, address: str, server: Collector, profile: Path) -> None:
    """One page view in a browser of its own, which ends when its beacon came."""
    words = [
        *(browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
        *("--disable-component-update", "--disable-sync", f"--user-data-dir={profile}"),
        # As root Chromium has no sandbox; the page is our own.
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        address,
    ]
    server.arrived.clear()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as one:
        try:
            if not server.arrived.wait(SECONDS):
                raise TimeoutError(f"no beacon came in {SECONDS} s from {address}")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)


def main() -> int:
    """Visits pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, metavar="OUTPUT.jsonl")
    parser.add_argument("--visits", type=int, default=5, metavar="N")
    parser.add_argument("--browser", default="chromium", metavar="CMD")
    parser.add_argument("--slow", type=float, default=0.0, metavar="MS", help="every second visit waits so long")
    options = parser.parse_args()
    browser = shutil.which(options.browser)
    if browser is None:
        print(f"in_chromium: there is no {options.browser}: apt-get install chromium", file=sys.stderr)
        return 3
    server = Collector(options.slow / 1e3)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for number in range(options.visits):
            address = f"http://127.0.0.1:{server.server_port}/visit/{number}"
            visit(browser, address, server, Path(folder) / str(number))
    server.shutdown()
    options.output.write_text("".join(json.dumps(one) + "\n" for one in server.beacons))
    return 0


if __name__ == "__main__":
    sys.exit(main())
