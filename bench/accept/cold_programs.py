"""Programs whose cold starts the acceptance runs of this directory diagnose, from 0.1 s to 2 s."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from diagnosed import CHROMIUM, FIREFOX, PYTHON, Case

SOURCE = 'class Main { public static void main(String[] words) { System.out.println(String.format("%d", words.length)); } }'
PANDAS = "pandas, scipy.stats, scipy.signal, scipy.ndimage, http.server, unittest.mock"
"""As many modules as make a cold start of about a second here."""
CASES = {
    "python": Case("python3, standard library", PYTHON),
    "gdb": Case("gdb, a line of Python", ["/usr/bin/gdb", "--batch", "-ex", "python print(1)"]),
    "qemu": Case("qemu-system-x86_64 --version", ["/usr/bin/qemu-system-x86_64", "--version"]),
    "node": Case("node, a module", ["/usr/bin/node", "-e", "require('http')"]),
    "clang": Case("clang, a C file of one line", ["/usr/bin/clang", "-fsyntax-only", "-x", "c", "/dev/null"]),
    "java": Case("java -version", ["/usr/bin/java", "-version"]),
    "javac": Case("javac --help-lint", ["/usr/bin/javac", "--help-lint"]),
    "source": Case("java, a source file", ["/usr/bin/java", "{place}/Main.java"]),
    "distances": Case("python3, scipy.spatial", ["/usr/bin/python3", "-c", "import scipy.spatial, http.server, unittest.mock"]),
    "tables": Case("python3, pandas alone", ["/usr/bin/python3", "-c", "import pandas"]),
    "frames": Case("python3, pandas", ["/usr/bin/python3", "-c", "import pandas, http.server, unittest.mock"]),
    "spatial": Case("python3, pandas and parts of scipy", ["/usr/bin/python3", "-c", "import pandas, scipy.spatial, scipy.sparse.linalg, http.server"]),
    "pandas": Case("python3, pandas and scipy", ["/usr/bin/python3", "-c", f"import {PANDAS}"]),
    "firefox": Case("Firefox to its page's first script", FIREFOX, "browser"),
    "chromium": Case("Chromium to its page's first script", CHROMIUM, "browser"),
}


def diagnosed(slowpath: str, case: Case, place: Path) -> dict[str, Any]:
    """The diagnosis of a program's cold starts as an ordinary user, without options about blocks, in as much time as it takes; `place` is an empty
    directory."""
    (place / "Main.java").write_text(SOURCE)
    words = [
        slowpath, "diagnose", "--cold", "--json", "--quiet", "--max-time", "1h", "--user", "nobody", "--ready", case.ready,
        "--env", "HOME={tmp}", "--env", "TMPDIR={tmp}", "-o", str(place / "out"), "--",
        *(word.replace("{place}", str(place)) for word in case.command),
    ]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=False, text=True)
    said = json.loads(done.stdout)
    if "error" in said:
        raise SystemExit(f"{case.title}: {said['error']}")
    return dict(said)
