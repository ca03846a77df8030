"""How long Chromium takes to open a page from a file, by its DevTools protocol over a pipe."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = "/usr/lib/chromium/chromium"
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --disable-quic --remote-debugging-pipe"
).split()
PATIENCE = 120
"""Seconds for a page."""

SECOND_FRAME = """new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"""
"""Milliseconds since the navigation began, when what the page shows after its load event is drawn."""


class Browser:
    """A browser that is spoken to through descriptors 3 and 4, one message after the other, each ended by a NUL."""

    def __init__(self, profile: Path) -> None:
        shutil.rmtree(profile, ignore_errors=True)
        profile.mkdir(parents=True)
        to_browser, from_us = os.pipe()
        to_us, from_browser = os.pipe()
        script = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", script, "bash", CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # It leaves a directory there when it is killed.
            env={**os.environ, "TMPDIR": str(profile)},
        )
        os.close(to_browser)
        os.close(from_browser)
        self.commands, self.answers = os.fdopen(from_us, "wb", buffering=0), os.fdopen(to_us, "rb")
        self.number, self.events = 0, []
        self.rest = b""

    def message(self) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self.rest:
            more = self.answers.read1(1 << 20)
            if not more:
                raise RuntimeError("Chromium ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        self.commands.write(json.dumps(command).encode() + b"\0")
        while (message := self.message()).get("id") != self.number:
            self.events.append(message.get("method"))
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def until(self, event: str) -> None:
        """Waits for an event."""
        while event not in self.events:
            self.events.append(self.message().get("method"))
        self.events.clear()

    def close(self) -> None:
        """Ends it, with its children."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.commands.close()
        self.answers.close()


def opened(page: Path, profile: Path) -> float:
    """Seconds until a page is there."""
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError(f"{page} does not open")))
    signal.alarm(PATIENCE)
    browser = Browser(profile)
    try:
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.ask("Page.enable", session)
        browser.events.clear()
        browser.ask("Page.navigate", session, url=page.absolute().as_uri())
        browser.until("Page.loadEventFired")
        found = browser.ask("Runtime.evaluate", session, expression=SECOND_FRAME, awaitPromise=True, returnByValue=True)
        return float(found["result"]["value"]) / 1e3
    finally:
        signal.alarm(0)
        browser.close()
