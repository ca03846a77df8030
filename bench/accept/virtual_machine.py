"""A virtual machine with a kernel of Debian's archive and copies of this machine's programs, emulated: no KVM, no network, nothing installed here.

Its root is an initial RAM disk; its first process is a Python program of ours, which prints to a second serial line what the caller reads."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import subprocess
from pathlib import Path

PACKAGE = "linux-image-cloud-amd64"
"""Depends on the newest kernel for virtual machines."""
EMULATOR = "qemu-system-x86_64"
DRIVERS = ("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk")
"""Modules of the disk, in the order in which they need each other."""
PYTHON = Path("/usr/lib/python3.11")
"""Debian 12's own, whose library is taken along without what tests and packages it."""
LEFT_OUT = {"__pycache__", "test", "idlelib", "ensurepip", "tkinter", "distutils", "lib2to3", "dist-packages", "config-3.11-x86_64-linux-gnu"}


class Unavailable(Exception):
    """What this machine cannot give: why, and what helps."""


def run(*words: str | Path, cwd: Path | None = None) -> str:
    """Standard output of a program that must succeed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=cwd, timeout=600, check=False)
    if done.returncode:
        raise Unavailable(f"{words[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def kernel(place: Path) -> tuple[Path, list[Path]]:
    """A kernel with the modules for its disk, unpacked to `place`."""
    depends = run("apt-cache", "depends", PACKAGE).split()
    names = [word for word in depends if word.startswith("linux-image-") and word != PACKAGE]
    if not names:
        raise Unavailable(f"the package {PACKAGE} is not in the archive; apt-get update")
    run("apt-get", "download", names[0], cwd=place)
    run("dpkg", "-x", next(place.glob("linux-image-*.deb")), place / "kernel")
    modules = {path.stem: path for path in (place / "kernel").rglob("*.ko")}
    return next((place / "kernel/boot").glob("vmlinuz-*")), [modules[name] for name in DRIVERS]


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

    def write(self, path: Path) -> None:
        """Writes it, compressed a little."""
        self.entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
        self.entry("TRAILER!!!", 0)
        path.write_bytes(gzip.compress(b"".join(self.parts), 1))


def booted(place: Path, image: Path, disk: RamDisk, storage: Path, patience_s: int) -> str:
    """What the machine wrote to its second serial line until it switched itself off."""
    if not shutil.which(EMULATOR):
        raise Unavailable(f"{EMULATOR} is not installed; apt-get install --no-install-recommends qemu-system-x86")
    disk.write(place / "initrd.gz")
    told, console = place / "told", place / "console"
    command = [
        EMULATOR, "-accel", "tcg,thread=multi", "-cpu", "max", "-M", "q35", "-m", "3072", "-smp", "2", "-display", "none", "-no-reboot", "-nodefaults",
        "-kernel", str(image), "-initrd", str(place / "initrd.gz"), "-append", "console=ttyS0 quiet panic=-1",
        "-serial", f"file:{console}", "-serial", f"file:{told}", "-drive", f"file={storage},format=raw,if=virtio",
    ]  # fmt: skip
    try:
        subprocess.run(command, timeout=patience_s, check=True, stdin=subprocess.DEVNULL)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        last = console.read_text(errors="replace")[-2000:] if console.exists() else ""
        raise SystemExit(f"the virtual machine did not end by itself ({error}); its console:\n{last}") from error
    return told.read_text(errors="replace")
