"""Packages of Debian's archive for any architecture: fetched once, unpacked into a directory of the run, and never installed.

    bench/accept/debian_archive.py ARCHITECTURE SUITE DIRECTORY PACKAGE...      unpacks them there

What is unpacked is run, or linked into what is released. So neither the way that it came by nor the cache is believed: the archive's keys
sign the index of a suite (InRelease), which has the sum of the list of packages, which has the sum of each. How old an index is that the
archive serves is not checked: suites that change no more have old ones."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

ARCHIVE = os.environ.get("SLOWPATH_ARCHIVE", "https://deb.debian.org/debian")
KEYRING = Path(os.environ.get("SLOWPATH_ARCHIVE_KEYRING", "/usr/share/keyrings/debian-archive-keyring.gpg")).absolute()
"""The keys of those who may sign an index."""
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


def signed(data: bytes, name: str) -> str:
    """The text in `data` that one of the keys has signed, and nothing that stands around it."""
    if not shutil.which("gpgv"):
        raise Unavailable("gpgv is not installed, without which nobody knows who made an index; apt-get install gpgv")
    if not KEYRING.is_file():
        remedy = "apt-get install debian-archive-keyring, or SLOWPATH_ARCHIVE_KEYRING=FILE"
        raise Unavailable(f"there is no {KEYRING} with the archive's keys; {remedy}")
    words = ["gpgv", "--keyring", KEYRING, "--status-fd", "2", "--output", "-"]
    done = subprocess.run(words, input=data, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"})
    said = done.stderr.decode(errors="replace").splitlines()
    # It ends with 0 only where every signature is good and by a key of these.
    if done.returncode or not any(line.startswith("[GNUPG:] VALIDSIG ") for line in said):
        why = next((line for line in said if "signature" in line and "GNUPG" not in line), "it has no signature")
        remedy = "SLOWPATH_ARCHIVE=URL names another mirror, a later debian-archive-keyring has newer keys"
        raise Unavailable(f"{name} is not signed by the keys in {KEYRING} ({why}); {remedy}")
    return done.stdout.decode()


def sums(release: str) -> dict[str, str]:
    """The SHA-256 of each file that an index names."""
    found = {}
    for line in release.partition("\nSHA256:\n")[2].splitlines():
        if not line.startswith(" "):
            break
        digest, _, name = line.split()
        found[name] = digest
    return found


def checked(suite: str, name: str, data: bytes, packages: bytes) -> str:
    """The index `data` of a suite, which must have `packages` as the file `name`."""
    release = signed(data, f"the index of {suite}")
    fields = dict(line.split(": ", 1) for line in release.splitlines() if ": " in line and not line.startswith(" "))
    remedy = "SLOWPATH_ARCHIVE=URL names another mirror"
    # Another suite's index is signed, too.
    if suite not in (fields.get("Suite"), fields.get("Codename")):
        raise Unavailable(f"the index of {suite} is one of {fields.get('Codename')}; {remedy}")
    if hashlib.sha256(packages).hexdigest() != sums(release).get(name):
        raise Unavailable(f"{name} of {suite} is not what the signed index says; try again, for it may just have changed, or {remedy}")
    return release


def listed(suite: str, architecture: str) -> str:
    """What the archive has; where it cannot be reached, what it had when it was asked last."""
    name = f"main/binary-{architecture}/Packages.xz"
    files = {f"dists/{suite}/{path}": CACHE / f"{suite}-{architecture}-{path.rpartition('/')[2]}" for path in ("InRelease", name)}
    try:
        index, packages = (fetched(path) for path in files)
    except Unavailable as error:
        if not all(path.exists() for path in files.values()):
            raise
        index, packages = (path.read_bytes() for path in files.values())
        dates = (line for line in checked(suite, name, index, packages).splitlines() if line.startswith("Date: "))
        print(f"{error}; taken is the index that was fetched before ({next(dates, 'without a date')})", file=sys.stderr)
    else:
        checked(suite, name, index, packages)
        for path, data in zip(files.values(), (index, packages), strict=True):
            kept(path, data)
    return lzma.decompress(packages).decode()


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
    # All are there and right before the first is unpacked.
    files = [package(packages[name]) for name in wanted]
    place.mkdir(parents=True, exist_ok=True)
    for file in files:
        subprocess.run(["dpkg", "-x", file, place], check=True)
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
