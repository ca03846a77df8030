"""Servers of tests end with them, however they end."""

from __future__ import annotations

import ctypes
import signal

SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """For a child between fork and exec: it is killed when its parent dies (prctl(2), PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(SET_PDEATHSIG, signal.SIGKILL)
