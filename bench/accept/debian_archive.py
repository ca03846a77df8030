"""Packages of Debian's archive for any architecture: fetched once, unpacked into a directory of the run, and never installed.

    bench/accept/debian_archive.py ARCHITECTURE SUITE DIRECTORY PACKAGE...      unpacks them there"""

from __future__ import annotations

import hashlib
import lzma
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

ARCHIVE = os.environ.get("SLOWPATH_ARCHIVE", "https://deb.debian.org/debian")
PATIENCE_S = 300
CACHE = Path(os.environ.get("SLOWPATH_KERNEL_CACHE", str(Path(__file__).resolve().parents[2] / "target/kernel-packages")))
"""Packages that were fetched, under the sums that the archive has of them."""


class Unavailable(Exception):
    """What this machine cannot give: why, and what helps."""


def fetched(path: str) -> bytes:
    """A file of the archive."""
    try:
        with urllib.request.urlopen(f"{ARCHIVE}/{path}", timeout=PATIENCE_S) as answer:
            found: bytes = answer.read()
            return found
    except OSError as error:
        raise Unavailable(f"{ARCHIVE}/{path}: {error}; SLOWPATH_ARCHIVE=URL names another mirror") from error


def kept(path: Path, data: bytes) -> bytes:
    """The same bytes, kept whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_bytes(data)
    part.rename(path)
    return data


def listed(suite: str, architecture: str) -> str:
    """What the archive has; where it cannot be reached, what it had when it was asked last."""
    path = CACHE / f"{suite}-{architecture}-Packages.xz"
    try:
        data = kept(path, fetched(f"dists/{suite}/main/binary-{architecture}/Packages.xz"))
    except Unavailable:
        if not path.exists():
            raise
        data = path.read_bytes()
    return lzma.decompress(data).decode()


def package(fields: dict[str, str]) -> Path:
    """The file of a package, fetched once."""
    path, wanted = CACHE / f"{fields['SHA256']}.deb", fields["SHA256"]
    data = path.read_bytes() if path.exists() else b""
    if hashlib.sha256(data).hexdigest() != wanted:
        data = fetched(fields["Filename"])
        if hashlib.sha256(data).hexdigest() != wanted:
            raise Unavailable(f"{fields['Filename']} is not what the archive's index says")
        kept(path, data)
    return path


def unpacked(suite: str, architecture: str, place: Path, names: list[str], followed: tuple[str, ...] = ()) -> list[str]:
    """Unpacks packages of a suite to `place`, and those that they depend on whose names begin with one of `followed`. Returns their names."""
    starts = tuple(f"Package: {name}\n" for name in names) + tuple(f"Package: {start}" for start in followed)
    packages = {}
    for stanza in listed(suite, architecture).split("\n\n"):
        if stanza.startswith(starts):
            fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line)
            packages[fields["Package"]] = fields
    wanted = list(names)
    for name in wanted:
        found = packages.get(name)
        if not found:
            raise Unavailable(f"{suite} has no package {name} for {architecture}")
        if name.startswith(followed):
            depends = [one.split()[0] for one in found.get("Depends", "").split(", ")]
            wanted += [one for one in depends if one in packages and one not in wanted]
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["dpkg", "-x", package(found), place], check=True)
    return wanted


def main() -> int:
    """From the command line."""
    if len(sys.argv) < 5:
        print(__doc__, file=sys.stderr)
        return 2
    architecture, suite, place, *names = sys.argv[1:]
    try:
        unpacked(suite, architecture, Path(place), names)
    except Unavailable as error:
        print(f"unavailable: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
