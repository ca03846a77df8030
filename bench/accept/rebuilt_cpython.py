"""CPython of Debian's source package: fetched, built with flags, and put to work.

The training work makes the orders, the unseen work judges them. Neither was chosen by what an order gains on it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

PACKAGE = "python3.11"
# Inputs of the workloads are files of the source itself.
_TRAINING = {
    "start": ["-c", "pass"],
    "json": ["-c", "import json; d = json.loads(json.dumps({str(i): [i, i / 3, None] for i in range(300)})); assert len(d) == 300"],
    "regex": ["-c", "import re; t = open('Lib/os.py').read(); re.sub(r'(\\w+)\\((.*?)\\)', r'\\2', t); re.findall(r'(?m)^def (\\w+)', t)"],
    "compile": ["-c", "compile(open('Lib/argparse.py').read(), 'a', 'exec')"],
    "classes": ["-c", "import dataclasses, enum, typing, collections; C = dataclasses.make_dataclass('C', ['a', 'b']); sorted(map(hash, map(str, [C(i, i) for i in range(200)])))"],
    "async": ["-c", "import asyncio; asyncio.run(asyncio.sleep(0.001))"],
    "files": ["-c", "import os, pathlib, csv, io; [p.stat() for p in pathlib.Path('Lib/json').rglob('*')]; list(csv.reader(io.StringIO('a,b\\n1,2\\n')))"],
    "threads": ["-c", "import concurrent.futures as f; e = f.ThreadPoolExecutor(2); assert sum(e.map(abs, range(-50, 0))) == 1275"],
    "dates": ["-c", "import datetime, zoneinfo, decimal, fractions; datetime.datetime.now().isoformat(); decimal.Decimal('1.1') ** 7; fractions.Fraction(1, 3) + 2"],
    "unittest": ["-m", "unittest", "-q", "test.test_bool"],
}
_UNSEEN = {
    "json.tool": ["-m", "json.tool", "--sort-keys", "input.json"],
    "tokenize": ["-m", "tokenize", "Lib/abc.py"],
    "argparse": ["-c", "import argparse, logging; p = argparse.ArgumentParser(); p.add_argument('--n', type=int, default=3); logging.warning('%d', p.parse_args(['--n', '4']).n)"],
    "html": ["-c", "import html.parser, textwrap; p = html.parser.HTMLParser(); p.feed('<p class=x>a &amp; b</p>' * 50); textwrap.fill('a b ' * 99)"],
    "difflib": ["-c", "import difflib; a = open('Lib/abc.py').read().split('\\n'); list(difflib.unified_diff(a, a[5:] + a[:9]))"],
    "pickle": ["-c", "import pickle, copy, base64, hashlib, random; random.seed(1); d = {random.random(): {i} for i in range(200)}; assert copy.deepcopy(pickle.loads(pickle.dumps(d))) == d; hashlib.sha256(base64.b64encode(b'x' * 999))"],
    "subprocess": ["-c", "import subprocess, tempfile, shutil; d = tempfile.mkdtemp(); subprocess.run(['/bin/true'], check=True); shutil.rmtree(d)"],
    "doctest": ["-c", "import doctest, statistics; doctest.testmod(statistics)"],
}


@dataclass(frozen=True)
class Source:
    """The source, and where what is made of it lies."""

    place: Path
    title: ClassVar[str] = "CPython 3.11 of Debian's source package"
    linker: ClassVar[Literal["bfd", "lld"]] = "bfd"
    """What Debian links it with."""
    training: ClassVar[dict[str, list[str]]] = _TRAINING
    unseen: ClassVar[dict[str, list[str]]] = _UNSEEN

    @property
    def tree(self) -> Path:
        """The sources."""
        return self.place / "src"

    @property
    def prefix(self) -> Path:
        """Where the library is installed: the same for all variants."""
        return self.place / "prefix"

    def fetch(self) -> None:
        """Fetches and unpacks the source package, where it is not there."""
        if self.tree.exists():
            return
        for directory in ("lists/partial", "cache/archives/partial"):
            (self.place / "apt" / directory).mkdir(parents=True, exist_ok=True)
        key = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
        sources = self.place / "apt/sources.list"
        sources.write_text(f"deb-src {key} http://deb.debian.org/debian bookworm main\n", encoding="utf-8")
        places = {
            "Etc::sourcelist": sources,
            "Etc::sourceparts": "/dev/null",
            "State::lists": self.place / "apt/lists",
            "Cache": self.place / "apt/cache",
        }
        apt = ["apt-get", "-q", *(word for name, value in places.items() for word in ("-o", f"Dir::{name}={value}"))]
        for words in ([*apt, "update"], [*apt, "source", "--download-only", PACKAGE]):
            subprocess.run(words, check=True, cwd=self.place, stdout=subprocess.DEVNULL)
        (description,) = self.place.glob("*.dsc")
        subprocess.run(
            ["dpkg-source", "-x", str(description), str(self.tree)], check=True, cwd=self.place, stdout=subprocess.DEVNULL
        )
        (self.tree / "input.json").write_text('{"b": [1, 2.5, "\\u00e9"], "a": {"c": null}}\n', encoding="utf-8")

    def script(self) -> Path:
        """The build command of `layout try`: objects of the same compiler flags are kept, the link is made again."""
        script = self.place / "build"
        script.write_text(
            f"""#!/bin/sh
set -e
directory={self.place}/objects-$(printf %s "$SLOWPATH_CFLAGS" | md5sum | cut -c1-8)
if [ ! -e "$directory/made" ]; then
    mkdir -p "$directory"
    cd "$directory"
    # What the build makes for itself is linked as its objects ask for; orders are for the one binary.
    case "$SLOWPATH_CFLAGS" in *-fno-pie*) link=-no-pie ;; *) link= ;; esac
    {self.tree}/configure -q --prefix={self.prefix} --with-ensurepip=no CFLAGS="$SLOWPATH_CFLAGS" LDFLAGS="$link" >configure.log 2>&1
    make -s -j"$(nproc)" >make.log 2>&1
    [ -e {self.prefix}/bin/{PACKAGE} ] || make -s install >install.log 2>&1
    touch made
fi
cd "$directory"
rm -f python
make -s python LDFLAGS="$SLOWPATH_LDFLAGS" >link.log 2>&1
cp python "$SLOWPATH_OUTPUT"
""",
            encoding="utf-8",
        )
        script.chmod(0o755)
        return script

    def build(self, name: str, cflags: str, ldflags: str) -> Path:
        """A binary with these flags."""
        output = self.place / name
        flags = {"SLOWPATH_CFLAGS": cflags, "SLOWPATH_LDFLAGS": ldflags, "SLOWPATH_OUTPUT": str(output)}
        subprocess.run([str(self.script())], check=True, env={**os.environ, **flags}, stdin=subprocess.DEVNULL)
        return output

    def environment(self) -> dict[str, str]:
        """What every workload runs with: the same hashes, no bytecode written, the one library."""
        return {
            "PATH": "/usr/bin:/bin",
            "PYTHONHOME": str(self.prefix),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
