"""Tools that record one process from outside at the same time: slowpath, perf, strace, ftrace and Perfetto. Each is attached before the
process does anything, and leaves a file that `slowpath import` reads (slowpath itself: a recording).

Nothing of them outlives the run: their processes end with the one that started them, and instances of ftrace are removed by a process
that waits for that end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

TRACEFS = Path("/sys/kernel/tracing")
SCHEDULER = ("sched_switch", "sched_waking", "sched_wakeup_new", "sched_process_exec", "sched_process_exit")
PAGES = "mm_filemap_add_to_page_cache"
BUFFER_KB = 32_768
"""Of each CPU: a machine in use has some 10,000 events of the scheduler a second, of 100 bytes."""
PATIENCE_S = 60.0


class UnavailableError(Exception):
    """A tool cannot record here; why, and what helps."""


@dataclass(frozen=True)
class Tool:
    """One that records now."""

    stop: Callable[[], None]
    """Waits until its file is whole."""
    file: Path


def until(holds: Callable[[], bool], what: str, patience: float = PATIENCE_S) -> None:
    """Waits until something holds."""
    deadline = time.monotonic() + patience
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.02)


def started(stack: ExitStack, command: list[str], log: Path, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A process that ends with this one, however that ends, and with the run's part that needs it."""
    with log.open("wb") as out:
        words = ["setpriv", "--pdeathsig", "KILL", *command]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)

    def end() -> None:
        if process.poll() is None:
            process.kill()
        process.wait()

    stack.callback(end)
    return process


def ended(process: subprocess.Popen[bytes], log: Path, asks: signal.Signals | None, fine: tuple[int, ...] = (0,)) -> None:
    """Waits until a tool has written its file."""
    if asks:
        process.send_signal(asks)
    if process.wait(timeout=PATIENCE_S) not in fine:
        sys.exit(f"{log.stem} ended with {process.returncode}: {log.read_text(errors='replace')[-1000:]}")


@contextmanager
def instance(name: str) -> Iterator[Path]:
    """An instance of ftrace with buffers of its own. A process that outlives this one removes it if this one is killed."""
    path = TRACEFS / "instances" / f"slowpath-{name}-{os.getpid()}"
    words = 'cat; for i in $(seq 200); do [ -d "$1" ] || exit 0; echo 0 > "$1/tracing_on"; rmdir "$1" && exit 0; sleep 0.1; done'
    with subprocess.Popen(["sh", "-c", words, "sh", str(path)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True) as guard:
        try:
            path.mkdir()
            yield path
        finally:
            # At the end of its input it removes the instance.
            guard.communicate(timeout=PATIENCE_S)


def slowpath(stack: ExitStack, binary: str, place: Path, pid: int) -> Tool:
    """`slowpath record` of everything that is compared."""
    recording, log = place / "slowpath", place / "slowpath.log"
    options = ["--files", "--off-cpu", "--sample", "997", "--stacks", "cpu"]
    process = started(stack, [binary, "record", "--quiet", *options, "-o", str(recording), "--pid", str(pid)], log)
    until(lambda: (recording / "manifest.json").exists() or process.poll() is not None, "slowpath record did not begin")
    return Tool(lambda: ended(process, log, None), recording)


def perf(stack: ExitStack, place: Path, pid: int) -> Tool:
    """`perf record` of the machine, as docs/import.md has it."""
    if not shutil.which("perf"):
        raise UnavailableError("perf is not installed (apt-get install linux-perf)")
    data, log = place / "perf.data", place / "perf.log"
    events = "cpu-clock/period=1000000/,sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new,filemap:" + PAGES
    command = ["perf", "record", "-q", "-a", "-g", "-d", "-c", "1", "-m", "4096", "-k", "CLOCK_MONOTONIC", "--no-buildid-cache", "-e", events]
    process = started(stack, [*command, "-o", str(data)], log)
    until(lambda: data.exists() or process.poll() is not None, "perf record did not begin")
    return Tool(lambda: ended(process, log, signal.SIGINT, (0, -signal.SIGINT, 130)), data)


def strace(stack: ExitStack, place: Path, pid: int) -> Tool:
    """strace of the process and its threads."""
    if not shutil.which("strace"):
        raise UnavailableError("strace is not installed (apt-get install strace)")
    trace, log = place / "strace.txt", place / "strace.log"
    process = started(stack, ["strace", "-f", "-T", "-ttt", "-y", "-o", str(trace), "-p", str(pid)], log)
    status = Path(f"/proc/{pid}/status")
    until(lambda: "TracerPid:\t0\n" not in status.read_text() or process.poll() is not None, "strace did not attach")
    return Tool(lambda: ended(process, log, None), trace)


def ftrace(stack: ExitStack, place: Path, pid: int) -> Tool:
    """The kernel's own tracer, as text."""
    if not (TRACEFS / "instances").is_dir():
        raise UnavailableError("tracefs is not mounted (mount -t tracefs none /sys/kernel/tracing), or this is not root")
    trace = place / "ftrace.txt"
    path = stack.enter_context(instance("ftrace"))
    (path / "buffer_size_kb").write_text(str(BUFFER_KB))
    (path / "trace_clock").write_text("mono")
    for event in SCHEDULER:
        (path / "events" / "sched" / event / "enable").write_text("1")
    (path / "events" / "filemap" / PAGES / "enable").write_text("1")

    def stop() -> None:
        (path / "tracing_on").write_text("0")
        with (path / "trace").open("rb") as buffer, trace.open("wb") as out:
            shutil.copyfileobj(buffer, out)

    return Tool(stop, trace)


def perfetto_programs(root: Path | None) -> dict[str, list[str]]:
    """How Perfetto's programs are started: installed, or below a directory with their libraries."""
    names = ("traced", "traced_probes", "perfetto")
    if root is None:
        found = {name: shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin") for name in names}
        if any(path is None for path in found.values()):
            raise UnavailableError("Perfetto's traced, traced_probes and perfetto are not installed; Debian unstable has them in the package "
                              "perfetto, which --perfetto takes unpacked, with libc6 (2.38 or later), libstdc++6, libgcc-s1 and zlib1g")
        return {name: [str(path)] for name, path in found.items()}
    libraries = f"{root}/usr/lib/x86_64-linux-gnu:{root}/usr/lib/perfetto"
    loader = [str(root / "usr/lib64/ld-linux-x86-64.so.2"), "--library-path", libraries]
    paths = {name: next((path for path in (root / "usr/bin" / name, root / "usr/sbin" / name) if path.exists()), None) for name in names}
    if any(path is None for path in paths.values()) or not Path(loader[0]).exists():
        raise UnavailableError(f"{root} lacks Perfetto's programs or their libraries")
    return {name: [*loader, str(path)] for name, path in paths.items()}


def perfetto(stack: ExitStack, place: Path, root: Path | None) -> Tool:
    """Perfetto's own recorder, with sockets and a trace instance of its own."""
    programs = perfetto_programs(root)
    path = stack.enter_context(instance("perfetto"))
    trace, log, configuration = place / "perfetto.pftrace", place / "perfetto.log", place / "perfetto.cfg"
    events = "".join(f' ftrace_events: "sched/{event}"' for event in SCHEDULER)
    configuration.write_text(
        "buffers { size_kb: 131072 fill_policy: DISCARD }\n"
        f'data_sources {{ config {{ name: "linux.ftrace" ftrace_config {{{events} ftrace_events: "task/task_newtask"'
        f' ftrace_events: "filemap/{PAGES}" buffer_size_kb: {BUFFER_KB} drain_period_ms: 250 instance_name: "{path.name}"'
        " compact_sched { enabled: true } } } }\n"
        'data_sources { config { name: "linux.process_stats" process_stats_config { scan_all_processes_on_start: true } } }\n'
        'data_sources { config { name: "linux.system_info" } }\n')
    sockets = os.environ | {"PERFETTO_PRODUCER_SOCK_NAME": str(place / "producer"), "PERFETTO_CONSUMER_SOCK_NAME": str(place / "consumer")}
    started(stack, programs["traced"], place / "traced.log", env=sockets)
    until((place / "consumer").exists, "traced did not begin")
    started(stack, programs["traced_probes"], place / "traced_probes.log", env=sockets)
    process = started(stack, [*programs["perfetto"], "--txt", "-c", str(configuration), "-o", str(trace)], log, env=sockets)
    enabled = path / "events" / "sched" / "sched_switch" / "enable"
    until(lambda: enabled.read_text().startswith("1") or process.poll() is not None, "perfetto did not begin")
    return Tool(lambda: ended(process, log, signal.SIGINT), trace)
