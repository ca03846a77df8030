"""Pages of a file that a run brings into memory, counted by the kernel: mincore(2) of the file on a fresh mount without readahead.

A mount of its own begins with an empty page cache, with readahead 0 the kernel reads single pages, and fault-around maps only what is
there: what is resident after the run is what it touched."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Image:
    """A file system of its own for one binary."""

    def __init__(self, place: Path, binary: Path) -> None:
        self.file, self.point, self.name = place / "pages.image", place / "pages.mount", binary.name
        self.point.mkdir(exist_ok=True)
        self.file.unlink(missing_ok=True)
        contents = place / "pages.contents"
        shutil.rmtree(contents, ignore_errors=True)
        contents.mkdir()
        shutil.copy(binary, contents)
        size = binary.stat().st_size * 2 + (8 << 20)
        subprocess.run(
            ["mkfs.ext4", "-q", "-d", str(contents), str(self.file), f"{size >> 10}k"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

    @contextlib.contextmanager
    def mounted(self) -> Iterator[Path]:
        """The binary on a fresh mount, read page by page."""
        device = subprocess.run(
            ["losetup", "--find", "--show", "--read-only", str(self.file)], check=True, stdout=subprocess.PIPE, text=True
        ).stdout.strip()
        try:
            Path(f"/sys/block/{Path(device).name}/queue/read_ahead_kb").write_text("0", encoding="ascii")
            subprocess.run(["mount", "-o", "ro,noload", device, str(self.point)], check=True)
            try:
                yield self.point / self.name
            finally:
                subprocess.run(["umount", str(self.point)], check=True)
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


def resident(path: Path) -> list[bool]:
    """Which pages of a file are in the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        at = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if at in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "mmap")
        try:
            answer = ctypes.create_string_buffer((size + PAGE - 1) // PAGE)
            if _libc.mincore(at, size, answer) != 0:
                raise OSError(ctypes.get_errno(), "mincore")
            return [bool(byte & 1) for byte in answer.raw]
        finally:
            _libc.munmap(at, size)
    finally:
        os.close(descriptor)


def code_pages(path: Path) -> range:
    """Pages of the file that hold code: from the first to the last section that is executed, without stubs."""
    first, last = None, 0
    for line in subprocess.run(["readelf", "-SW", str(path)], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 7 and words[1].startswith(".text") and "X" in words[7]:
            offset, size = int(words[4], 16), int(words[5], 16)
            first = offset if first is None else min(first, offset)
            last = max(last, offset + size)
    if first is None:
        raise ValueError(f"{path} has no code")
    return range(first // PAGE, (last + PAGE - 1) // PAGE)
