"""What a command is doing, on standard error, where a person watches."""

from __future__ import annotations

import sys


class Progress:
    """Lines that replace each other on a terminal; nothing elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.shown = not quiet and sys.stderr.isatty()

    def __call__(self, line: str) -> None:
        """Shows a line."""
        if self.shown:
            # What comes from file names is escaped.
            sys.stderr.write(f"\r\x1b[K{line.encode('unicode_escape').decode()[:120]}")
            sys.stderr.flush()

    def done(self) -> None:
        """Takes the line away."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
