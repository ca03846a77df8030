"""Builds the programs of pairs: the wrapper, the workloads, the hog and a library to be preloaded."""

from __future__ import annotations

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra"]


def build(directory: Path) -> None:
    """Builds them into a directory; raises `CalledProcessError`, with the compiler's words on standard error."""
    programs: dict[str, list[str | Path]] = {
        # Static: what is preloaded and tuned is meant for the workload.
        "in-context": [HERE / "in_context.c", "-static"],
        "work": [HERE / "work.c"],
        "hog": [HERE / "hog.c"],
        "guard.so": [HERE / "guard.c", "-shared", "-fPIC"],
    }
    for name, words in programs.items():
        subprocess.run(["gcc", *FLAGS, *words, "-o", directory / name], check=True)
