"""What the kernel itself counts of a thread: schedstat, and delay accounting through taskstats (linux/taskstats.h, linux/genetlink.h)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

DELAYS = Path("/proc/sys/kernel/task_delayacct")
NETLINK_GENERIC, GENL_ID_CTRL = 16, 0x10
CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 3, 1, 2
TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_PID = 1, 1
TASKSTATS_TYPE_STATS, TASKSTATS_TYPE_AGGR_PID = 3, 4
NLMSG_ERROR, NLM_F_REQUEST = 2, 1
BLKIO_COUNT_AT = 32
"""Offset in struct taskstats: version, exit code, flags and niceness fill 16 bytes, the delay of the processor 16."""


def schedstat(pid: int, tid: int) -> tuple[float, float]:
    """Milliseconds that a thread ran, and that it waited for a processor (Documentation/scheduler/sched-stats.rst)."""
    ran, waited, _ = Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()
    return int(ran) / 1e6, int(waited) / 1e6


def attribute(kind: int, value: bytes) -> bytes:
    """An attribute of a message."""
    whole = struct.pack("=HH", len(value) + 4, kind) + value
    return whole + b"\0" * (-len(whole) % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes of a message by kind."""
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


class Taskstats:
    """Asks the kernel about threads."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self.socket.settimeout(5)
        answer = self.ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attribute(CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0"))
        (self.family,) = struct.unpack("=H", answer[CTRL_ATTR_FAMILY_ID])

    def ask(self, family: int, command: int, attributes_of_it: bytes) -> dict[int, bytes]:
        """One question and its answer."""
        body = struct.pack("=BBH", command, 1, 0) + attributes_of_it
        self.socket.send(struct.pack("=IHHII", 16 + len(body), family, NLM_F_REQUEST, 1, os.getpid()) + body)
        answer = self.socket.recv(65536)
        length, kind = struct.unpack_from("=IH", answer)
        if kind == NLMSG_ERROR:
            raise OSError(-struct.unpack_from("=i", answer, 16)[0], "the kernel answers no question about tasks")
        return attributes(answer[20:length])

    def block_io(self, tid: int) -> tuple[int, float]:
        """How often a thread waited for block I/O, and how many milliseconds."""
        answer = self.ask(self.family, TASKSTATS_CMD_GET, attribute(TASKSTATS_CMD_ATTR_PID, struct.pack("=I", tid)))
        stats = attributes(answer[TASKSTATS_TYPE_AGGR_PID])[TASKSTATS_TYPE_STATS]
        count, delay = struct.unpack_from("=QQ", stats, BLKIO_COUNT_AT)
        return count, delay / 1e6


@contextlib.contextmanager
def delay_accounting() -> Iterator[str | None]:
    """Threads that are made meanwhile have their delays counted; gives the reason where the kernel cannot. Afterwards the setting is what it
    was, also when this process is interrupted or killed: a process of its own, which no signal of the terminal reaches, puts it
    back as soon as the end of its pipe is closed. Who comes second waits, or the first would end what the second needs, and the
    second would leave behind what it found."""
    if not DELAYS.exists():
        yield "this kernel has no kernel.task_delayacct (CONFIG_TASK_DELAY_ACCT)"
        return
    with DELAYS.open() as setting:
        fcntl.flock(setting, fcntl.LOCK_EX)
        before = setting.read()
        # It inherits the lock, and so holds it until it has written.
        keeper = subprocess.Popen(
            ["sh", "-c", 'read -r _; printf %s "$1" > "$2"', "keeper", before, str(DELAYS)],
            stdin=subprocess.PIPE,
            start_new_session=True,
            pass_fds=[setting.fileno()],
        )
        try:
            DELAYS.write_text("1")
            yield None
        finally:
            keeper.stdin.close()
            if keeper.wait():
                raise RuntimeError(f"kernel.task_delayacct could not be set back to {before.strip()}")
