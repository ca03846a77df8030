"""Writes the program of this example: `start.py` starts isolated helpers, each of which imports the package `pages`.

    make_app.py DIRECTORY

Python keeps compiled code in `pages/__pycache__`. A helper that cannot read it compiles the package again, silently.
"""

from __future__ import annotations

import compileall
import sys
from pathlib import Path

MODULES, FUNCTIONS, HELPERS = 4, 2000, 2
START = """import subprocess, sys
from pathlib import Path

place = str(Path(__file__).resolve().parent)
words = "import sys; sys.path.insert(0, {{!r}}); import {modules}".format(place)
for _ in range({helpers}):
    # Nothing is saved, as from a directory that helpers may not write to.
    subprocess.run([sys.executable, "-B", "-c", words], check=True)
"""


def main(directory: Path) -> None:
    """Writes and compiles it."""
    package = directory / "pages"
    package.mkdir(parents=True)
    for number in range(MODULES):
        functions = (f"def f{one}(a, b):\n    return a * {one} + b * {number}\n\n" for one in range(FUNCTIONS))
        (package / f"m{number}.py").write_text("".join(functions))
    (package / "__init__.py").write_text("")
    modules = ", ".join(f"pages.m{number}" for number in range(MODULES))
    (directory / "start.py").write_text(START.format(modules=modules, helpers=HELPERS))
    compileall.compile_dir(package, quiet=1)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
