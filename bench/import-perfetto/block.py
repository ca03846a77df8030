"""A stretch of a phone's trace, made by a model of its scheduler: what `linux.ftrace`, `linux.process_stats`, track events and a profiler
write, in the shares in which traces of app launches have them. The field numbers are those of Perfetto's published definitions.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass, field

from wire import number, packed, text

CPUS = 8
PROCESSES = 80
BEGIN = 3 << 42
"""Boot time of the first event, ns: four hours, whose numbers take seven bytes for days."""
DRAIN = 250_000_000
"""ns between packets of one CPU: the period in which Perfetto empties the kernel's buffers."""
TRACK_SEQUENCE, PROFILER_SEQUENCE, FTRACE_SEQUENCE = 3, 4, 2
CLONE_THREAD = 0x1_0000
NAMES = (b"system_server", b"surfaceflinger", b"RenderThread", b"binder:512_3", b"kworker/3:1H", b"HeapTaskDaemon", b"ndroid.systemui",
         b"Jit thread pool", b"f2fs_ckpt-254:4", b"mali-cmar-backe", b"OkHttp Dispatch", b"DefaultDispatch", b"glide-source-th", b"Profile Saver")
SLICES = (b"Choreographer#doFrame 8273", b"inflate", b"measure", b"layout", b"draw-VRI[MainActivity]", b"VerifyClass com.example.app.R",
          b"JIT compiling void com.example.app.Feed.bind(int)", b"monitor contention with owner main (812)", b"dequeueBuffer", b"postAndWait")


@dataclass
class Task:
    """A thread."""

    tid: int
    pid: int
    name: bytes


@dataclass
class Cpu:
    """What one CPU has put into its buffer since the last packet."""

    running: Task | None = None
    events: list[bytes] = field(default_factory=list)
    switches: list[tuple[int, int, int, bytes, int]] = field(default_factory=list)
    wakings: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    depth: int = 0


class Phone:
    """The machine whose trace it is."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cpus = [Cpu() for _ in range(CPUS)]
        self.tasks: list[Task] = []
        for at in range(PROCESSES):
            pid = 400 + 37 * at
            for thread in range(1 + self.random.randrange(12)):
                name = self.random.choice(NAMES) if thread else b"app.example%d" % at
                self.tasks.append(Task(pid + thread, pid, name[:15]))
        self.asleep = {task.tid: task for task in self.tasks}
        self.runnable: deque[Task] = deque()
        self.pages: dict[int, int] = dict.fromkeys(range(9_000, 9_400), 0)
        self.started = 30_000
        self.packets: list[bytes] = []

    # What a CPU's buffer takes.

    def event(self, cpu: Cpu, ts: int, kind: int, message: bytes) -> None:
        """An event of ftrace."""
        tid = cpu.running.tid if cpu.running else 0
        cpu.events.append(text(2, number(1, ts) + number(2, tid) + text(kind, message)))

    def wake(self, cpu: Cpu, ts: int) -> None:
        """A thread that sleeps is woken."""
        if len(self.asleep) < 2:
            return
        task = self.tasks[self.random.randrange(len(self.tasks))]
        if self.asleep.pop(task.tid, None) is None:
            return
        self.runnable.append(task)
        cpu.wakings.append((ts, task.tid, self.random.randrange(CPUS), task.name))

    def switch(self, cpu: Cpu, ts: int) -> None:
        """Another thread runs."""
        old, new = cpu.running, self.runnable.popleft() if self.runnable else None
        if old is None and new is None:
            return
        state = 0
        if old is not None:
            if cpu.depth:
                self.event(cpu, ts - 200, 3, number(1, 0xFFFF_FF80_0812_3456) + text(2, b"E|%d\n" % old.pid))
                cpu.depth -= 1
            if self.random.random() < 0.2:
                self.runnable.append(old)
            else:
                state = 2 if self.random.random() < 0.15 else 1
                self.asleep[old.tid] = old
            if state == 2:
                reason = number(1, old.tid) + number(2, 0xFFFF_FF80_0800_0000 + self.random.randrange(1 << 20)) + number(3, 1)
                self.event(cpu, ts - 100, 18, reason)
        cpu.running = new
        cpu.switches.append((ts, state, new.tid if new else 0, new.name if new else b"swapper/0", 120))

    def work(self, cpu: Cpu, ts: int) -> None:
        """What a thread does while it runs."""
        task = cpu.running
        if task is None:
            return
        chance = self.random.random()
        if chance < 0.30:
            words = b"B|%d|%s\n" % (task.pid, self.random.choice(SLICES))
            self.event(cpu, ts, 3, number(1, 0xFFFF_FF80_0812_3456) + text(2, words))
            cpu.depth += 1
        elif chance < 0.36:
            inode = self.random.choice(list(self.pages)[:64])
            for page in range(self.random.choice((1, 4, 8, 16))):
                at = self.pages[inode] + page
                message = number(1, 0x80000 + at) + number(2, inode) + number(3, at) + number(4, 0xFE00005)
                self.event(cpu, ts + page * 300, 97 if self.random.random() < 0.9 else 98, message)
            self.pages[inode] += 16
        elif chance < 0.40:
            request = (number(1, 0xFE00005) + number(2, 8 * self.random.randrange(1 << 24)) + number(3, 8 * self.random.randrange(1, 33)))
            self.event(cpu, ts, 45, request + number(4, 0) + text(5, b"RA") + text(6, task.name) + text(7, b""))
            self.event(cpu, ts + 90_000, 125, request + number(4, 0) + text(5, b"RA"))
        elif chance < 0.42:
            child = self.started = self.started + 1
            self.event(cpu, ts, 235, number(1, child) + text(2, task.name) + number(3, CLONE_THREAD | 0x3D0F00) + number(4, 0))
            self.event(cpu, ts + 500, 236, number(1, child) + text(2, task.name) + text(3, b"pool-9-thread-1") + number(4, 0))
            self.event(cpu, ts + 900, 238, text(1, b"pool-9-thread-1") + number(2, child) + number(3, task.pid) + number(4, 120))
        elif chance < 0.50:
            self.event(cpu, ts, 11, number(1, 300_000 + 100_000 * self.random.randrange(20)) + number(2, self.random.randrange(CPUS)))
        if self.random.random() < 0.7:
            self.wake(cpu, ts + 40)

    # Packets.

    def packet(self, sequence: int, content: bytes) -> None:
        """A packet of one writer."""
        self.packets.append(text(1, content + number(10, sequence)))

    def drain(self, index: int, since: int) -> None:
        """What one CPU's buffer holds becomes a packet."""
        cpu = self.cpus[index]
        table: dict[bytes, int] = {}
        for name in [*(one[3] for one in cpu.switches), *(one[3] for one in cpu.wakings)]:
            table.setdefault(name, len(table))

        def steps(times: list[int]) -> list[int]:
            return [late - early for early, late in zip([0, *times], times, strict=False)]

        switches, wakings = cpu.switches, cpu.wakings
        compact = (packed(1, steps([one[0] for one in switches])) + packed(2, [one[1] for one in switches])
                   + packed(3, [one[2] for one in switches]) + packed(4, [one[4] for one in switches])
                   + b"".join(text(5, name) for name in table) + packed(6, [table[one[3]] for one in switches])
                   + packed(7, steps([one[0] for one in wakings])) + packed(8, [one[1] for one in wakings])
                   + packed(9, [one[2] for one in wakings]) + packed(10, [120] * len(wakings))
                   + packed(11, [table[one[3]] for one in wakings]))
        bundle = number(1, index) + b"".join(cpu.events) + text(4, compact) + number(10, since)
        self.packet(FTRACE_SEQUENCE, text(1, bundle))
        cpu.events, cpu.switches, cpu.wakings = [], [], []

    def begin(self, ts: int) -> None:
        """What stands at the begin of a trace: clocks, the machine, its processes, and what later packets refer to by number."""
        clocks = ((1, 1_790_000_000_000_000_000), (3, ts - 1_000), (6, ts))
        self.packet(1, text(6, b"".join(text(1, number(1, clock) + number(2, shown)) for clock, shown in clocks)))
        system = text(1, text(1, b"Linux") + text(3, b"6.1.75-android14-11") + text(4, b"aarch64"))
        self.packet(1, text(45, system + number(5, 34) + number(6, 4096) + number(8, CPUS)))
        processes = {task.pid: task.name for task in reversed(self.tasks)}
        tree = b"".join(text(1, number(1, pid) + number(2, 1) + text(3, b"com.example." + name)) for pid, name in processes.items())
        threads = b"".join(text(2, number(1, task.tid) + number(3, task.pid)) for task in self.tasks if task.tid != task.pid)
        self.packet(1, text(2, tree + threads + number(3, ts)))
        names = b"".join(text(2, number(1, at + 1) + text(2, name)) for at, name in enumerate(SLICES))
        self.packet(TRACK_SEQUENCE, number(8, ts) + number(13, 1) + text(12, text(1, number(1, 1) + text(2, b"view")) + names))
        for task in self.tasks[:40]:
            thread = text(4, number(1, task.pid) + number(2, task.tid) + text(5, task.name))
            self.packet(TRACK_SEQUENCE, number(8, ts) + text(60, number(1, task.tid) + thread) + number(13, 2))
        paths = text(17, number(1, 1) + text(2, b"system")) + text(17, number(1, 2) + text(2, b"libhwui.so"))
        code = text(19, number(1, 1) + number(4, 0x7000_0000) + number(5, 0x7100_0000) + number(7, 1) + number(7, 2))
        functions = b"".join(text(5, number(1, at) + text(2, b"android::uirenderer::function%d(int)" % at)) for at in range(1, 400))
        frames = b"".join(text(6, number(1, at) + number(2, at) + number(3, 1) + number(4, 0x1000 * at)) for at in range(1, 400))
        stacks = b"".join(
            text(7, number(1, at) + b"".join(number(2, self.random.randrange(1, 400)) for _ in range(self.random.randrange(8, 30))))
            for at in range(1, 600))
        self.packet(PROFILER_SEQUENCE, number(8, ts) + number(13, 1) + text(12, paths + code + functions + frames + stacks))

    def others(self, ts: int) -> None:
        """Track events, samples and memory of processes until `ts`."""
        for task in self.tasks[:40]:
            for at in range(6):
                begin = ts - DRAIN + 40_000_000 * at + task.tid
                name = self.random.randrange(len(SLICES)) + 1
                slice_begin = number(3, 1) + number(10, name) + number(9, 1) + number(11, task.tid)
                self.packet(TRACK_SEQUENCE, number(8, begin) + text(11, slice_begin) + number(13, 2))
                self.packet(TRACK_SEQUENCE, number(8, begin + 9_000_000) + text(11, number(9, 2) + number(11, task.tid)) + number(13, 2))
        for at in range(CPUS * 25):
            task = self.tasks[self.random.randrange(len(self.tasks))]
            sample = (number(1, at % CPUS) + number(2, task.pid) + number(3, task.tid) + number(4, self.random.randrange(1, 600))
                      + number(5, 2))
            self.packet(PROFILER_SEQUENCE, number(8, ts - DRAIN + at * DRAIN // 200) + text(66, sample) + number(13, 2))
        memory = b"".join(
            text(1, number(1, task.pid) + number(2, 9_000_000) + number(3, self.random.randrange(300_000)) + number(10, 0))
            for task in self.tasks if task.tid == task.pid)
        self.packet(1, number(8, ts) + text(9, memory + number(2, ts)))


def phone_trace(seconds: float, seed: int = 1) -> bytes:
    """A trace of this length of time, some 2.4 MB a second."""
    phone = Phone(seed)
    phone.begin(BEGIN)
    for task in phone.tasks[:20]:
        phone.runnable.append(task)
        del phone.asleep[task.tid]
    turns = [(BEGIN + 1_000 + 700 * index, index) for index in range(CPUS)]
    heapq.heapify(turns)
    since, end = BEGIN, BEGIN + int(seconds * 1e9)
    while since < end:
        until = since + DRAIN
        while turns[0][0] < until:
            ts, index = turns[0]
            cpu = phone.cpus[index]
            phone.switch(cpu, ts)
            busy = phone.random.randrange(30_000, 600_000)
            for at in range(phone.random.randrange(4)):
                phone.work(cpu, ts + 2_000 + at * busy // 4)
            if cpu.running is None:
                phone.wake(cpu, ts + 3_000)
            heapq.heapreplace(turns, (ts + busy + 5_000, index))
        for index in range(CPUS):
            phone.drain(index, since)
        phone.others(until)
        since = until
    return b"".join(phone.packets)
