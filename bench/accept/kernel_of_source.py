"""A kernel that Debian has no package of, built from its package of the kernel's source: small, without modules, for an emulated machine.

What is built is kept under the sums of source and configuration: it takes some 15 minutes of two CPUs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from debian_archive import CACHE, Unavailable, kept, unpacked

TOOLS = {"flex": "flex", "bison": "bison", "bc": "bc", "pahole": "pahole"}
CONFIGURATION = """
SMP PRINTK BUG ELF_CORE FUTEX EPOLL SIGNALFD TIMERFD EVENTFD SHMEM AIO ADVISE_SYSCALLS MEMBARRIER RSEQ KALLSYMS KALLSYMS_ALL
POSIX_TIMERS MULTIUSER SYSFS PROC_FS PROC_SYSCTL PROC_PAGE_MONITOR TMPFS DEVTMPFS TTY UNIX98_PTYS SYSVIPC POSIX_MQUEUE CROSS_MEMORY_ATTACH MEMFD_CREATE
HIGH_RES_TIMERS NO_HZ_IDLE BLK_DEV_INITRD RD_GZIP BINFMT_ELF BINFMT_SCRIPT COREDUMP FILE_LOCKING INOTIFY_USER NAMESPACES UTS_NS IPC_NS USER_NS PID_NS NET_NS
CGROUPS CGROUP_SCHED FAIR_GROUP_SCHED CFS_BANDWIDTH MEMCG CPUSETS TASKSTATS TASK_DELAY_ACCT TASK_XACCT TASK_IO_ACCOUNTING SECCOMP SECCOMP_FILTER
PERF_EVENTS BPF BPF_SYSCALL BPF_JIT BPF_EVENTS FTRACE FUNCTION_TRACER DYNAMIC_FTRACE KPROBES KPROBE_EVENTS UPROBE_EVENTS FTRACE_SYSCALLS
DEBUG_KERNEL DEBUG_INFO_DWARF4 DEBUG_INFO_BTF COMPACTION MIGRATION TRANSPARENT_HUGEPAGE TRANSPARENT_HUGEPAGE_MADVISE BLOCK NET UNIX INET PACKET
PCI PCI_HOST_GENERIC SERIAL_AMBA_PL011 SERIAL_AMBA_PL011_CONSOLE SERIAL_8250 SERIAL_8250_PCI SECURITY SECURITYFS SECURITY_LANDLOCK
""".split()
"""All set to y, beside the size of pages, where the architecture has them; everything else is left out."""
NEEDED = ("BPF_EVENTS", "BPF_JIT", "DEBUG_INFO_BTF", "SERIAL_8250_PCI", "BINFMT_SCRIPT", "TRANSPARENT_HUGEPAGE", "SECCOMP_FILTER")
"""Those without which the rest is of no use: an option that depends on another one is left out without a word."""
OTHERS = {"LSM": '"landlock"', "NR_CPUS": "4", "LOCALVERSION_AUTO": "n"}


def built(place: Path, suite: str, source: str, architecture: str, prefix: str, pages: str) -> Path:
    """The kernel of the package `source` with the option `pages`, built with the compiler of this prefix."""
    missing = [package for tool, package in TOOLS.items() if not shutil.which(tool)]
    if missing or not shutil.which(f"{prefix}gcc"):
        raise Unavailable(f"to build a kernel {', '.join(missing) or f'{prefix}gcc'} is not installed; scripts/install-packages.sh peers")
    options = {**{name: "y" for name in CONFIGURATION}, **OTHERS, pages: "y"}
    text = "".join(f"CONFIG_{name}={value}\n" for name, value in options.items())
    tree = place / "kernel-source"
    unpacked(suite, architecture, tree, [source])
    archive = next((tree / "usr/src").glob("linux-source-*.tar.xz"))
    key = hashlib.sha256(text.encode() + hashlib.sha256(archive.read_bytes()).digest()).hexdigest()
    release = CACHE / f"{key}-release"
    image = CACHE / f"{key}-Image"
    if not (image.exists() and release.exists()):
        subprocess.run(["tar", "-xf", archive, "-C", tree], check=True)
        directory = next(path for path in tree.iterdir() if path.name.startswith("linux-source-"))
        (directory / "options").write_text(text)
        words = ["make", "-C", str(directory), f"-j{os.cpu_count()}", "-s", f"ARCH={architecture}", f"CROSS_COMPILE={prefix}"]
        environment = {**os.environ, "KCONFIG_ALLCONFIG": "options"}
        subprocess.run([*words, "allnoconfig"], check=True, env=environment, stdout=subprocess.DEVNULL)
        chosen = (directory / ".config").read_text()
        if left_out := [name for name in (*NEEDED, pages) if f"CONFIG_{name}=y\n" not in chosen]:
            raise Unavailable(f"this source cannot be configured with {', '.join(left_out)}")
        subprocess.run([*words, "Image"], check=True, stdout=subprocess.DEVNULL)
        kept(image, (directory / f"arch/{architecture}/boot/Image").read_bytes())
        kept(release, (directory / "include/config/kernel.release").read_bytes())
    found = place / f"vmlinuz-{release.read_text().strip()}-{pages.lower()}"
    shutil.copy(image, found)
    return found
