"""Plain launches of pairs of `cases/context`, which know what is true of them: no part of slowpath measures here."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cases/context"))
sys.dont_write_bytecode = True

from median_interval import MedianInterval, median_interval  # noqa: E402
from pairs import Pair  # noqa: E402

@dataclass(frozen=True)
class Arm:
    """One context of the workload."""

    name: str
    wrapper: list[str]


def arms(pair: Pair) -> list[Arm]:
    """The fast one, the same again, the slow one; each cause alone, and all but it; each harmless difference alone, and all of them."""
    found = [Arm("fast", pair.fast()), Arm("fast again", pair.fast()), Arm("slow", pair.slow())]
    for one in pair.differences:
        if one.is_cause:
            found.append(Arm(f"fast with slow {one.factor}", pair.steps(lambda other, one=one: other is one)))
            found.append(Arm(f"slow with fast {one.factor}", pair.steps(lambda other, one=one: other is not one)))
    found.append(Arm("harmless", pair.steps(lambda other: not other.is_cause)))
    for one in pair.differences:
        if not one.is_cause:
            name = one.factor if one.factor != "none" else "/".join(one.slow or one.fast)
            found.append(Arm(f"harmless {name}", pair.steps(lambda other, one=one: other is one)))
    return found


def launched(words: list[str]) -> float:
    """Wall time of a launch, ms."""
    quiet = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in (0, 1)]
    began = time.monotonic()
    child = os.posix_spawn(words[0], words, os.environ, file_actions=quiet)
    _, status, _ = os.wait4(child, 0)
    took = time.monotonic() - began
    if status != 0:
        raise SystemExit(f"{' '.join(words)}\nended with status {status}")
    return took * 1e3


def measured(pair: Pair, blocks: int, rng: random.Random) -> dict[str, list[float]]:
    """Times of each arm, ms, by block; in each block the arms run once, in another order."""
    all_arms = arms(pair)
    times: dict[str, list[float]] = {arm.name: [] for arm in all_arms}
    for arm in all_arms:
        launched([*arm.wrapper, *pair.made_of.command])
    for _ in range(blocks):
        for arm in rng.sample(all_arms, len(all_arms)):
            times[arm.name].append(launched([*arm.wrapper, *pair.made_of.command]))
    return times


def ratios(times: dict[str, list[float]], name: str, base: str = "fast") -> MedianInterval:
    """What an arm takes in a block against another."""
    return median_interval([one / of_base for one, of_base in zip(times[name], times[base])])


def bound(wrapper: Path, words: list[str], patience_s: float) -> subprocess.CompletedProcess[str]:
    """A command that is asked to end when this process does, however that ends."""
    process = subprocess.Popen(
        [str(wrapper), "bound", "--", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        said, complaint = process.communicate(timeout=patience_s)
    except BaseException:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    return subprocess.CompletedProcess(words, process.returncode, said, complaint)
