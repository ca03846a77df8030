"""A virtual machine with a kernel of Debian's archive and copies of this machine's programs, emulated: no KVM, no network, nothing installed here.

Its root is an initial RAM disk; its first process is a Python program of ours, which prints to a second serial line what the caller reads."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import re
import shutil
import stat
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

ARCHIVE = os.environ.get("SLOWPATH_ARCHIVE", "http://deb.debian.org/debian")
PACKAGE = "linux-image-cloud-amd64"
"""Depends on the newest kernel for virtual machines."""
PATIENCE_S = 300
MEMORY_MB = 3072
EMULATOR = "qemu-system-x86_64"
PROCESSOR = "Westmere,+rdrand"
"""With the random numbers that the interpreter waits for."""
WITHOUT_PAIRS = ",-cx16"
"""Version 7.2 of the emulator gets cmpxchg16b wrong: it puts an address into the flags, and the kernel panics. Kernels allocate memory with it all the
time before 6.18; since then they do so rarely, but give none to BPF programs where there is no such instruction (`kmalloc_nolock`, mm/slub.c)."""
PAIRS_SINCE = (6, 18)
PYTHON = Path("/usr/lib/python3.11")
"""Debian 12's own, whose library is taken along without what tests and packages it."""
LEFT_OUT = {"__pycache__", "test", "idlelib", "ensurepip", "tkinter", "distutils", "lib2to3", "dist-packages", "config-3.11-x86_64-linux-gnu"}


HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("SLOWPATH_KERNEL_CACHE", str(HERE.parents[1] / "target/kernel-packages")))
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


def listed(suite: str) -> str:
    """What the archive has; where it cannot be reached, what it had when it was asked last."""
    path = CACHE / f"{suite}-Packages.xz"
    try:
        data = kept(path, fetched(f"dists/{suite}/main/binary-amd64/Packages.xz"))
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


def module(path: Path) -> bytes:
    """A module as the kernel takes it."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def kernel(place: Path, suite: str, meta: str = PACKAGE) -> tuple[Path, dict[str, Path]]:
    """The kernel that a package of a suite depends on, and modules by name, unpacked to `place`."""
    index = listed(suite)
    packages = {}
    for stanza in index.split("\n\n"):
        if stanza.startswith(("Package: linux-image-", "Package: linux-binary-", "Package: linux-modules-")):
            fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line)
            packages[fields["Package"]] = fields
    wanted, unpacked = [meta], place / "kernel"
    for name in wanted:
        fields = packages.get(name)
        if not fields:
            raise Unavailable(f"{suite} has no package {name}")
        # Later kernels are split into what is executed and what is loaded.
        depends = [one.split()[0] for one in fields.get("Depends", "").split(", ")]
        wanted += [one for one in depends if one in packages and one not in wanted]
        subprocess.run(["dpkg", "-x", package(fields), unpacked], check=True)
    image = next((path for path in unpacked.rglob("vmlinuz*") if path.is_file()), None)
    if not image:
        raise Unavailable(f"no kernel in {', '.join(wanted)} of {suite}")
    return image, {path.name.split(".ko")[0]: path for pattern in ("*.ko", "*.ko.xz") for path in unpacked.rglob(pattern)}


class RamDisk:
    """An archive as the kernel unpacks it (Documentation/driver-api/early-userspace/buffer-format.rst)."""

    def __init__(self) -> None:
        """Empty."""
        self.parts: list[bytes] = []
        self.names: set[str] = set()

    def entry(self, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        """Anything, once."""
        if name in self.names:
            return
        parent = os.path.dirname(name)
        if parent:
            self.entry(parent, stat.S_IFDIR | 0o755)
        self.names.add(name)
        path = name.encode() + b"\0"
        fields = (len(self.names), mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(path), 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + path
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def directory(self, name: str, mode: int = 0o755) -> None:
        """A directory."""
        self.entry(name, stat.S_IFDIR | mode)

    def file(self, name: str, data: bytes, mode: int = 0o755) -> None:
        """A file."""
        self.entry(name, stat.S_IFREG | mode, data)

    def program(self, path: Path, name: str = "") -> None:
        """A program under its own name or another, with the libraries that it is linked to."""
        self.file(name or str(path).lstrip("/"), path.read_bytes())
        told = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
        for library in (word for word in told.split() if word.startswith("/")):
            self.file(library.lstrip("/"), Path(library).resolve().read_bytes())

    def python(self) -> None:
        """The interpreter with its library."""
        self.program(Path("/usr/bin/python3").resolve(), "usr/bin/python3")
        for path in sorted(PYTHON.rglob("*")):
            if path.is_file() and not LEFT_OUT & set(path.parts):
                if path.suffix == ".so":
                    self.program(path)
                else:
                    self.file(str(path).lstrip("/"), path.read_bytes(), 0o644)

    def first_process(self, plan: dict[str, Any]) -> None:
        """What every machine has: the first process with its interpreter, and what it is to do."""
        for name in ("proc", "sys", "dev", "root", "var/tmp"):
            self.directory(name)
        self.directory("tmp", 0o1777)
        self.python()
        self.file("init", (HERE / "guest.py").read_bytes())
        self.file(f"{plan['does']}.py", (HERE / f"{plan['does']}.py").read_bytes(), 0o644)
        self.file("plan.json", json.dumps(plan).encode(), 0o644)
        self.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n", 0o644)
        self.file("etc/group", b"root:x:0:\nnogroup:x:65534:\n", 0o644)

    def write(self, path: Path) -> None:
        """Writes it, compressed a little."""
        self.entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
        self.entry("TRAILER!!!", 0)
        path.write_bytes(gzip.compress(b"".join(self.parts), 1))


def stripped(program: Path, place: Path) -> Path:
    """A copy without what only a debugger reads."""
    copy = place / f"{program.name}.stripped"
    subprocess.run(["strip", "-o", copy, program], check=True)
    return copy


def booted(place: Path, image: Path, disk: RamDisk, patience_s: int, storage: Path | None = None, memory_mb: int = MEMORY_MB) -> list[dict[str, Any]]:
    """What the machine told on its second serial line until it switched itself off; exits where it told nothing."""
    if not shutil.which(EMULATOR):
        raise Unavailable(f"{EMULATOR} is not installed; apt-get install --no-install-recommends qemu-system-x86")
    disk.write(place / "initrd.gz")
    told, console = place / "told", place / "console"
    version = re.search(r"/(?:vmlinuz-)?(\d+)\.(\d+)[^/]*(?:/vmlinuz)?$", str(image))
    has_pairs = version and (int(version[1]), int(version[2])) >= PAIRS_SINCE
    processor = PROCESSOR + ("" if has_pairs else WITHOUT_PAIRS)
    command = [
        EMULATOR, "-accel", "tcg,thread=multi", "-cpu", processor, "-M", "q35", "-m", str(memory_mb), "-smp", "2", "-display", "none", "-no-reboot", "-nodefaults",
        "-kernel", str(image), "-initrd", str(place / "initrd.gz"), "-append", "console=ttyS0 quiet panic=-1 random.trust_cpu=on",
        "-serial", f"file:{console}", "-serial", f"file:{told}", *(["-drive", f"file={storage},format=raw,if=virtio"] if storage else []),
    ]  # fmt: skip
    problem = ""
    try:
        subprocess.run(command, timeout=patience_s, check=True, stdin=subprocess.DEVNULL)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        problem = str(error)
    lines = told.read_text(errors="replace").splitlines() if told.exists() else []
    found = [json.loads(line) for line in lines if line.startswith("{")]
    failed = "".join(one["text"] for one in found if one["kind"] == "failed")
    if problem or failed or not found or found[-1]["kind"] != "end":
        last = console.read_text(errors="replace")[-2000:] if console.exists() else ""
        raise SystemExit(f"the virtual machine did not do all: {problem}\n{failed}\nits console:\n{last}")
    return found
