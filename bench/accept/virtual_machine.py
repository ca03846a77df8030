"""A virtual machine with a kernel of Debian's archive, emulated: no KVM, no network, nothing installed here.

Its root is an initial RAM disk with copies of this machine's programs, or of the archive's where the machine has another architecture; its first
process is a Python program of ours, which prints to a second serial line what the caller reads."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import platform
import re
import shutil
import stat
import struct
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kernel_of_source
from debian_archive import Unavailable, unpacked

MEMORY_MB = 3072
PYTHON = Path("usr/lib/python3.11")
"""Debian 12's own, whose library is taken along without what tests and packages it."""
LEFT_OUT = {"__pycache__", "test", "idlelib", "ensurepip", "tkinter", "distutils", "lib2to3", "dist-packages"}
PROGRAMS = ["coreutils", "libc6", "libgcc-s1", "libelf1", "zlib1g", "libexpat1", "libffi8", "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"]
"""Debian 12's packages of what a machine has whose architecture is not this one's."""
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Machine:
    """What differs from one architecture to another."""

    name: str
    """As `uname -m` says."""
    architecture: str
    """As Debian says."""
    emulator: str
    emulator_package: str
    board: tuple[str, ...]
    threads: str
    """Of the emulator: one for all processors (`single`), or one for each (`multi`)."""
    cpu: str
    console: str
    line: tuple[str, ...]
    """Where the first process writes its report: its name there, and the emulator's options up to the path of the file here."""
    append: str
    kernels: tuple[tuple[str, str], ...]
    """Suites of Debian, and packages that depend on the newest kernel of one kind there, or have its source."""
    binder: tuple[tuple[str, str], ...]
    """The same of kernels with the binder driver."""
    pages: str = ""
    """Option of a kernel that is built from source."""
    without_pairs: str = ""
    """What the CPU lacks with kernels before `PAIRS_SINCE`."""

    @property
    def is_native(self) -> bool:
        """Whether this machine's own programs run there."""
        return platform.machine() == self.name

    @property
    def triple(self) -> str:
        """As the GNU tools say."""
        return f"{self.name}-linux-gnu"

    def tool(self, name: str) -> str:
        """A program of the compiler's."""
        return name if self.is_native else f"{self.triple}-{name}"

    @property
    def slowpath(self) -> Path:
        """What is to be tried."""
        if self.is_native:
            return Path(os.environ.get("SLOWPATH", str(ROOT / "target/release/slowpath")))
        name = f"SLOWPATH_{self.name.upper()}"
        path = Path(os.environ.get(name, str(ROOT / f"target/{self.name}-unknown-linux-gnu/release/slowpath")))
        if not path.exists():
            raise Unavailable(f"there is no {path}; make build-{self.name} builds it, {name}=FILE names another")
        return path

    def root(self, place: Path) -> Path:
        """The directory with programs and libraries."""
        if self.is_native:
            return Path("/")
        root = place / "root"
        if not root.exists():
            unpacked("bookworm", self.architecture, root, PROGRAMS)
        return root

    def compiled(self, source: Path, program: Path) -> None:
        """Builds a program of one C file."""
        if not shutil.which(self.tool("gcc")):
            raise Unavailable(f"{self.tool('gcc')} is not installed; scripts/install-packages.sh test")
        subprocess.run([self.tool("gcc"), "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-pthread", source, "-o", program], check=True)

    def stripped(self, program: Path, place: Path) -> Path:
        """A copy without what only a debugger reads."""
        copy = place / f"{program.name}.stripped"
        subprocess.run([self.tool("strip"), "-o", copy, program], check=True)
        return copy


X86_64 = Machine(
    name="x86_64",
    architecture="amd64",
    emulator="qemu-system-x86_64",
    emulator_package="qemu-system-x86",
    board=("-M", "q35"),
    # Where each processor has a thread, the emulator executes a breakpoint by which the kernel patches a running function after the kernel has
    # taken it away, and the kernel panics (docs/measurements/2026-11-30T0040-emulator-patching.md).
    threads="single",
    # With the random numbers that the interpreter waits for.
    cpu="Westmere,+rdrand",
    console="ttyS0",
    line=("ttyS1", "-serial", "file:"),
    append="random.trust_cpu=on",
    kernels=tuple((suite, "linux-image-cloud-amd64") for suite in ("bookworm", "trixie", "trixie-backports")),
    # The kernel for machines with hardware: that for virtual ones has no binder.
    binder=tuple((suite, "linux-image-amd64") for suite in ("bookworm", "trixie")),
    # Version 7.2 of the emulator gets cmpxchg16b wrong: it puts an address into the flags, and the kernel panics. Kernels allocate memory with it all
    # the time before 6.18; since then they do so rarely, but give none to BPF programs where there is no such instruction (`kmalloc_nolock`, mm/slub.c).
    without_pairs=",-cx16",
)
AARCH64 = Machine(
    name="aarch64",
    architecture="arm64",
    emulator="qemu-system-aarch64",
    emulator_package="qemu-system-arm",
    board=("-M", "virt,gic-version=3"),
    threads="multi",
    # Has pages of 4, 16 and 64 KiB. The board gives the kernel a seed for random numbers.
    cpu="neoverse-n1",
    console="ttyAMA0",
    line=("ttyS0", "-device", "pci-serial,chardev=report", "-chardev", "file,id=report,path="),
    append="random.trust_bootloader=on",
    kernels=(
        ("bookworm", "linux-image-arm64"),
        ("trixie", "linux-image-arm64"),
        ("trixie-backports", "linux-image-arm64"),
        ("trixie-backports", "linux-image-arm64-16k"),
        # Debian has no kernel with pages of 64 KiB.
        ("trixie", "linux-source-6.12"),
    ),
    pages="ARM64_64K_PAGES",
    binder=(("bookworm", "linux-image-arm64"), ("trixie", "linux-image-arm64")),
)
MACHINES = {machine.name: machine for machine in (X86_64, AARCH64)}
PAIRS_SINCE = (6, 18)


def asked(words: list[str], kernels: str) -> tuple[Machine, list[tuple[str, str]]] | None:
    """The machine and kernels that a command line names: `[--machine NAME] [SUITE[/PACKAGE]...]`; `kernels`: the field with the usual ones.
    Nothing where it says something else."""
    machine = X86_64
    if words[:1] == ["--machine"]:
        if len(words) < 2 or words[1] not in MACHINES:
            return None
        machine, words = MACHINES[words[1]], words[2:]
    if any(word.startswith("-") for word in words):
        return None
    usual: tuple[tuple[str, str], ...] = getattr(machine, kernels)
    split = [word.partition("/") for word in words]
    return machine, [(suite, package or usual[0][1]) for suite, _, package in split] or list(usual)


def module(path: Path) -> bytes:
    """A module as the kernel takes it."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def kernel(machine: Machine, place: Path, suite: str, package: str) -> tuple[Path, dict[str, Path]]:
    """The kernel that a package of a suite depends on, and modules by name, unpacked to `place`."""
    if package.startswith("linux-source-"):
        return kernel_of_source.built(place, suite, package, machine.architecture, f"{machine.triple}-", machine.pages), {}
    directory = place / "kernel"
    # Later kernels are split into what is executed and what is loaded.
    names = unpacked(suite, machine.architecture, directory, [package], ("linux-image-", "linux-binary-", "linux-modules-"))
    image = next((path for path in directory.rglob("vmlinuz*") if path.is_file()), None)
    if not image:
        raise Unavailable(f"no kernel in {', '.join(names)} of {suite}")
    return image, {path.name.split(".ko")[0]: path for pattern in ("*.ko", "*.ko.xz") for path in directory.rglob(pattern)}


def bootable(image: Path) -> Path:
    """The kernel as the emulator takes it. One that unpacks itself where there is firmware has its like inside
    (drivers/firmware/efi/libstub/zboot-header.S)."""
    data = image.read_bytes()
    if data[:2] != b"MZ" or data[4:8] != b"zimg":
        return image
    offset, size = struct.unpack_from("<II", data, 8)
    packed, kind = data[offset : offset + size], data[24:56].split(b"\0")[0].decode()
    if kind.startswith("gzip"):
        plain = zlib.decompressobj(wbits=31).decompress(packed)
    elif kind.startswith("zstd"):
        plain = subprocess.run(["zstd", "-dcq"], input=packed, capture_output=True, check=False).stdout
    else:
        plain = lzma.LZMADecompressor().decompress(packed)
    inside = image.with_name(f"{image.name}.inside")
    inside.write_bytes(plain)
    return inside


class RamDisk:
    """An archive as the kernel unpacks it (Documentation/driver-api/early-userspace/buffer-format.rst)."""

    def __init__(self, machine: Machine, place: Path) -> None:
        """Empty."""
        self.machine = machine
        self.root = machine.root(place)
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

    def linked(self, path: Path, found: dict[str, Path]) -> dict[str, Path]:
        """Adds to `found` what loads a program or library and what it is linked to, under their names there."""
        listed = subprocess.run(["readelf", "-ldW", path], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout
        names = [name.lstrip("/") for name in re.findall(r"program interpreter: (\S+)\]", listed)]
        for library in re.findall(r"\(NEEDED\).*\[(.+)\]", listed):
            directories = (f"lib/{self.machine.triple}", f"usr/lib/{self.machine.triple}", "lib", "lib64")
            name = next((f"{directory}/{library}" for directory in directories if (self.root / directory / library).is_file()), None)
            if not name:
                raise Unavailable(f"{path} needs {library}, which is not in {self.root}")
            names.append(name)
        for name in names:
            if name not in found:
                found[name] = self.root / name
                self.linked(found[name], found)
        return found

    def program(self, path: Path, name: str) -> None:
        """A program with the libraries that it is linked to."""
        for library, source in self.linked(path, {}).items():
            self.file(library, source.read_bytes())
        self.file(name, path.read_bytes())

    def python(self) -> None:
        """The interpreter with its library."""
        self.program(self.root / "usr/bin/python3.11", "usr/bin/python3")
        left_out = {*LEFT_OUT, f"config-3.11-{self.machine.triple}"}
        for path in sorted((self.root / PYTHON).rglob("*")):
            name = path.relative_to(self.root)
            if not path.is_file() or left_out & set(name.parts):
                continue
            try:
                if path.suffix == ".so":
                    self.program(path, str(name))
                else:
                    self.file(str(name), path.read_bytes(), 0o644)
            except Unavailable:
                # A database, encryption: nothing that a first process needs.
                continue

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


def booted(place: Path, image: Path, disk: RamDisk, patience_s: int, storage: Path | None = None, memory_mb: int = MEMORY_MB) -> list[dict[str, Any]]:
    """What the machine reported on its second serial line until it switched itself off; exits where it reported nothing."""
    machine = disk.machine
    if not shutil.which(machine.emulator):
        raise Unavailable(f"{machine.emulator} is not installed; apt-get install --no-install-recommends {machine.emulator_package}")
    disk.write(place / "initrd.gz")
    report, console = place / "report", place / "console"
    version = re.search(r"/(?:vmlinuz-)?(\d+)\.(\d+)[^/]*(?:/vmlinuz)?$", str(image))
    has_pairs = version and (int(version[1]), int(version[2])) >= PAIRS_SINCE
    cpu = machine.cpu + ("" if has_pairs else machine.without_pairs)
    line, *options = machine.line
    options[-1] += str(report)
    # What the kernel does not know is the environment of the first process.
    append = f"console={machine.console} quiet panic=-1 {machine.append} SLOWPATH_LINE=/dev/{line}"
    command = [
        machine.emulator, "-accel", f"tcg,thread={machine.threads}", "-cpu", cpu, *machine.board, "-m", str(memory_mb), "-smp", "2", "-display", "none", "-no-reboot",
        "-nodefaults", "-kernel", str(bootable(image)), "-initrd", str(place / "initrd.gz"), "-append", append,
        "-serial", f"file:{console}", *options, *(["-drive", f"file={storage},format=raw,if=virtio"] if storage else []),
    ]  # fmt: skip
    problem = ""
    try:
        subprocess.run(command, timeout=patience_s, check=True, stdin=subprocess.DEVNULL)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        problem = str(error)
    lines = report.read_text(errors="replace").splitlines() if report.exists() else []
    found = [json.loads(line) for line in lines if line.startswith("{")]
    failed = "".join(one["text"] for one in found if one["kind"] == "failed")
    if problem or failed or not found or found[-1]["kind"] != "end":
        last = console.read_text(errors="replace")[-2000:] if console.exists() else ""
        raise SystemExit(f"the virtual machine did not do all: {problem}\n{failed}\nits console:\n{last}")
    return found
