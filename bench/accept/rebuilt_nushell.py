"""nushell of its published crate: fetched, built with flags, and put to work. Eight hundred crates of Rust in one file of 84 MB.

The training work makes the orders, the unseen work judges them. Neither was chosen by what an order gains on it."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

VERSION = "0.115.1"
SHA256 = "93c815d22e41d1f92e9ca589dac217dbe623fb2adf83e563af88aa8315aba223"
NO_CONFIG = ["-n", "--no-std-lib", "-c"]
# Inputs of the workloads are files of the source itself.
_TRAINING = {
    "start": "",
    "lists": "1..200 | each {|i| $i * $i } | where ($it mod 3) == 0 | math sum",
    "json": "{a: [1 2.5 null], b: {c: 'x'}} | to json | from json | get a.1",
    "toml": "open Cargo.toml | get package.version",
    "strings": "open --raw README.md | lines | str lowercase | where ($it | str contains 'shell') | length",
    "table": "ls src | select name type | sort-by name | first 3 | table",
    "closures": "def f [x: int] { if $x < 2 { $x } else { (f ($x - 1)) + (f ($x - 2)) } }; f 9",
    "groups": "[[k v]; [a 1] [b 2] [a 3]] | group-by k | items {|k, t| {k: $k, n: ($t.v | math sum)} } | to csv",
    "external": "^/bin/echo one two | str trim | split row ' ' | length",
    "errors": "try { error make {msg: 'no'} } catch {|e| $e.msg }",
}
_UNSEEN = {
    "yaml": "{a: [1 2], b: {c: true}} | to yaml | from yaml | get b.c",
    "dates": "'2024-02-29T10:00:00+00:00' | into datetime | format date '%A %j'",
    "paths": "ls src | get name | path parse | get stem | sort | last",
    "regex": "open --raw README.md | parse --regex '(?P<word>[A-Z][a-z]+)' | uniq-by word | length",
    "reduce": "seq 1 60 | reduce --fold 1 {|i, acc| ($acc * $i) mod 1000003 }",
    "windows": "seq 1 50 | window 3 | each { math avg } | enumerate | last | get item",
    "columns": "[[a b c]; [1 2 3] [4 5 6]] | transpose | rename k x y | update x {|r| $r.x + $r.y } | to md",
    "types": "[0x[ff 01], 3kib, 2min, 1..3] | each { describe } | str join ','",
}


@dataclass(frozen=True)
class Source:
    """The source, and where what is made of it lies."""

    place: Path
    title: ClassVar[str] = f"nushell {VERSION}"
    linker: ClassVar[Literal["bfd", "lld"]] = "lld"
    """What rustc links with by itself."""
    training: ClassVar[dict[str, list[str]]] = {name: [*NO_CONFIG, words] for name, words in _TRAINING.items()}
    unseen: ClassVar[dict[str, list[str]]] = {name: [*NO_CONFIG, words] for name, words in _UNSEEN.items()}

    @property
    def tree(self) -> Path:
        """The sources."""
        return self.place / f"nu-{VERSION}"

    def fetch(self) -> None:
        """Fetches and unpacks the crate, where it is not there."""
        if self.tree.exists():
            return
        with urllib.request.urlopen(f"https://static.crates.io/crates/nu/nu-{VERSION}.crate", timeout=60) as answer:
            crate = answer.read()
        if hashlib.sha256(crate).hexdigest() != SHA256:
            raise ValueError(f"nu-{VERSION}.crate is not the file that it was")
        archive = self.place / "nu.crate"
        archive.write_bytes(crate)
        with tarfile.open(archive) as files:
            files.extractall(self.place, filter="data")

    def build(self, name: str, cflags: str, ldflags: str) -> Path:
        """A binary with these flags. Rust has a section for every function by itself; of the compiler's flags `-fno-pie` counts."""
        output = self.place / name
        words = [f"-Clink-arg={word}" for word in shlex.split(ldflags)]
        if "-fno-pie" in cflags:
            words.append("-Crelocation-model=static")
        # Its own settings but two: whole programs optimised at every link would take hours, and names are needed.
        settings = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_STRIP": "none", "CARGO_TARGET_DIR": str(self.place / "objects")}
        subprocess.run(
            ["cargo", "rustc", "--quiet", "--locked", "--release", "--bin", "nu", "--", *words],
            check=True, cwd=self.tree, env={**os.environ, **settings}, stdin=subprocess.DEVNULL,
        )
        output.unlink(missing_ok=True)
        shutil.copy(self.place / "objects/release/nu", output)
        return output

    def environment(self) -> dict[str, str]:
        """What every workload runs with: no configuration of a user's."""
        home = self.place / "home"
        home.mkdir(exist_ok=True)
        return {"PATH": "/usr/bin:/bin", "HOME": str(home)}
