"""Losses at the highest rate: one processor faults as fast as it can, and what was recorded and what was lost must add up to
what the kernel counted, to the last one; also when the recorder is stopped for a while, and then it must have lost some."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from limits import Check
from processes import cpu_ns, descendants, stat_of
from recorders import DEFAULT, END_SECONDS, RunFailed, Slowpath

VARIANTS = (DEFAULT, "stacks")
MEGABYTES = 100
STOP_AFTER = 0.5
"""Seconds of CPU time that the faulting process has used when the recorder is stopped."""
STOPPED_SECONDS = 3.0
"""Seconds of CPU time for which that process goes on alone: on a busy machine, real time would say nothing."""
STEP_SECONDS = 0.02


@dataclass
class LossRun:
    """One run, of one recorder."""

    recorder: str
    title: str
    stopped: float
    """Seconds of the faulting process's CPU time for which the recorder was stopped."""
    per_second: float = 0.0
    """Faults a second of CPU time while memory was touched."""
    counted: int = 0
    """Faults of the faulting process by the kernel's own counters."""
    recorded: int = 0
    """Faults of that process in the recording."""
    lost: int = 0
    """Faults that the recording says are lost."""
    other_losses: int = 0
    """Losses of other kinds: stacks, mappings and so on."""
    failed: str = ""
    """Why the run reported nothing."""

    @property
    def missing(self) -> int:
        """Faults that are neither recorded nor counted as lost."""
        return self.counted - self.recorded - self.lost


def run_losses(programs: Path, scratch: Path, recorder: Slowpath, seconds: float, stop: bool) -> LossRun:
    """Records the faults of some seconds."""
    run = LossRun(recorder.name, recorder.title, STOPPED_SECONDS if stop else 0.0)
    try:
        with tempfile.TemporaryDirectory(dir=scratch) as name:
            directory = Path(name)
            running = recorder.start(directory, [str(programs / "faults"), str(MEGABYTES), "0", "0", str(seconds)])
            stopper = threading.Thread(target=stop_for_a_while, args=(running.process.pid, recorder.binary))
            if stop:
                stopper.start()
            try:
                lines = [line.split() for line in running.wait().splitlines()]
            finally:
                if stop:
                    stopper.join()
            found = {line[0]: line for line in lines}
            if running.process.returncode or not {"child", "touch", "counted"} <= set(found):
                raise RunFailed((directory / "messages").read_text(encoding="utf-8"))
            touched = [(int(line[1]), int(line[2])) for line in lines if line[0] == "touch"]
            run.per_second = sum(pages for _, pages in touched) * 1e9 / sum(took for took, _ in touched)
            run.counted = int(found["counted"][1])
            run.recorded = faults_of(recorder, directory, found["child"][1])
            losses: dict[str, int] = recorder.manifest(directory)["losses"]
            run.lost = sum(lost for kind, lost in losses.items() if kind.rpartition(".")[2] == "faults")
            run.other_losses = sum(losses.values()) - run.lost
    except (RunFailed, OSError, ValueError, subprocess.SubprocessError) as error:
        run.failed = str(error) or type(error).__name__
    return run


def stop_for_a_while(pid: int, binary: Path) -> None:
    """Stops a recorder's own processes, not its target's, and continues them."""
    deadline = time.monotonic() + END_SECONDS / 2
    if not wait_for_cpu(pid, STOP_AFTER, deadline):
        return
    own = [one for one in descendants(pid) if executable(one) == binary]
    try:
        for one in own:
            signal_to(one, signal.SIGSTOP)
        wait_for_cpu(pid, STOP_AFTER + STOPPED_SECONDS, deadline)
    finally:
        for one in own:
            signal_to(one, signal.SIGCONT)


def wait_for_cpu(pid: int, seconds: float, deadline: float) -> bool:
    """Waits until a process faults.c below a recorder has used so much CPU time; false when it never does."""
    while time.monotonic() < deadline:
        ours = [one for one in descendants(pid) if (stat := stat_of(one)) and stat[0] == "faults"]
        if any(cpu_ns(one) >= seconds * 1e9 for one in ours):
            return True
        if stat_of(pid) is None:
            return False
        time.sleep(STEP_SECONDS)
    return False


def signal_to(pid: int, number: signal.Signals) -> None:
    """Sends a signal to a process, which may have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def executable(pid: int) -> Path | None:
    """The program of a process."""
    try:
        return Path(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return None


def faults_of(recorder: Slowpath, directory: Path, pid: str) -> int:
    """Rows of the recording's faults that a process has."""
    command = [*recorder.export(directory), "--to", "csv", "--table", "faults"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as export:
        lines = iter(export.stdout or ())
        column = next(lines, "").rstrip("\n").split(",").index("pid")
        count = sum(line.split(",", column + 1)[column] == pid for line in lines)
        if export.wait(END_SECONDS):
            raise RunFailed("the recording cannot be exported")
    return count


def loss_table(runs: list[LossRun]) -> list[str]:
    """The runs as a Markdown table."""
    heads = ["recorder", "stopped for s", "faults a second", "faults by the kernel", "recorded", "lost", "neither", "other losses"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for run in runs:
        counts = (run.counted, run.recorded, run.lost, run.missing, run.other_losses)
        lines.append(f"| {' | '.join([run.title, f'{run.stopped:.0f}', f'{run.per_second:.0f}', *map(str, counts)])} |")
    return lines


def loss_checks(runs: list[LossRun]) -> list[Check]:
    """Every fault is recorded or counted as lost; and a recorder that was stopped has lost some, or it shows nothing."""
    checks = []
    for run in runs:
        what = f"{run.recorder}, losses{', stopped' if run.stopped else ''}"
        if run.failed:
            checks.append(Check(f"{what}: the run succeeds", run.failed, False))
            continue
        missing = f"{run.missing} of {run.counted} missing"
        checks.append(Check(f"{what}: recorded and lost are what the kernel counted", missing, run.missing == 0))
        if run.stopped:
            checks.append(Check(f"{what}: some were lost, and counted", f"{run.lost} lost", run.lost > 0))
    return checks
