"""How many rows a second each tool answers for, and with how much memory; run by bench/fleet/run.

The same launches for all: Parquet files of generated data. A tool runs in a process of its own, so its peak of memory
is its own; time is that of the query, from files to figures, without the start of Python. Ours answer from the cells
that `ingest` made; what that took is a line of its own. Exact quantiles of the others are compared with ours. Exit code
1 where a marginal takes more than 1 s for 25 million rows or a tenth of pandas, or anything of ours 60 s or 4 GiB; 3
where this machine has no room for the data.

All that is made lies in one directory, which is removed at the end, also after a signal; what a run that was killed
outright left is removed by the next one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from slowpath_fleet import generator

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "accept"))

from scratch import PLACE, scratch  # noqa: E402

CHUNK_USERS = 150_000
# Launches of a user of the generator, on average.
LAUNCHES = 13
# What a machine that does this may give to ours, and what no tool may exceed.
MOST_MEMORY, TOO_MUCH_MEMORY = 4 << 30, 16 << 30
# Bytes of disk a row: Parquet file, store and what spills; 29 were measured, twice as many are asked for.
DISK = 60
SHARES = (0.5, 0.75, 0.95, 0.99)

# A process: BEFORE, what starts a tool, BEGIN, what asks it and leaves `found`, END.
BEFORE = """
import glob, json, re, resource, sys, time
files, store, shares = sorted(glob.glob(sys.argv[1])), sys.argv[2], json.loads(sys.argv[3])
"""
BEGIN = """
spent = resource.getrusage(resource.RUSAGE_SELF)
cpu, began = spent.ru_utime + spent.ru_stime, time.perf_counter()
"""
END = """
took = time.perf_counter() - began
spent = resource.getrusage(resource.RUSAGE_SELF)
peak = int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) * 1024
print(json.dumps([took, spent.ru_utime + spent.ru_stime - cpu, peak, found]))
"""
# Ingest, with a line of progress a file; `found` stays empty.
INGEST = """
from pathlib import Path
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Store
begun = []
def progress(line):
    begun.append(time.perf_counter())
    done = len(begun) - 1
    if done:
        left = (begun[-1] - begun[0]) / done * (len(files) - done)
        print(f"ingested {done} of {len(files)} files, {left:.0f} s left", file=sys.stderr, flush=True)
"""
INGESTED = """
ingest(Store.create(Path(store)), [Path(one) for one in files], IngestOptions(), progress)
found = {}
"""
# What Ibis imports at its first connection belongs to the start.
OURS = """
import ibis
from slowpath_fleet import Fleet
ibis.duckdb.connect().disconnect()
fleet = Fleet(store)
"""


@dataclass(frozen=True)
class Tool:
    """What starts it, and what asks it."""

    name: str
    start: str
    ask: str


INGESTING = Tool("slowpath-fleet, ingest (once)", INGEST, INGESTED)
ONE = Tool(
    "slowpath-fleet, compare by one column",
    OURS,
    """
rows = fleet.compare(by="device", quantiles="50,75,95,99").result.rows
found = {one.value: [each.value for each in one.quantiles.values()] for one in rows}
""",
)
FIVE = Tool(
    "slowpath-fleet, compare by five columns",
    OURS,
    """
found = {}
for column in ("device", "os", "network", "start", "navigation"):
    fleet.compare(by=column)
""",
)
SLICES = Tool(
    "slowpath-fleet, slices to depth 2",
    OURS,
    """
fleet.slices(baseline="rival", max_depth=2)
found = {}
""",
)
PANDAS = Tool(
    "pandas, exact quantiles by one column",
    "import pandas as pd",
    """
table = pd.concat([pd.read_parquet(one, columns=["device", "value"]) for one in files])
made = table.groupby("device").value.quantile(shares).unstack()
found = {name: list(row) for name, row in made.iterrows()}
""",
)
POLARS = Tool(
    "Polars, exact quantiles by one column",
    "import polars as pl",
    """
columns = [pl.col("value").quantile(one, "linear").alias(str(one)) for one in shares]
made = pl.scan_parquet(files).group_by("device").agg(columns).collect()
found = {row[0]: list(row[1:]) for row in made.iter_rows()}
""",
)
DUCKDB = Tool(
    "DuckDB, exact quantiles by one column",
    "import duckdb",
    """
query = f"SELECT device, quantile_cont(value, {shares}) FROM read_parquet({files}) GROUP BY device"
found = {name: list(values) for name, values in duckdb.sql(query).fetchall()}
""",
)
TOOLS = (ONE, FIVE, SLICES, PANDAS, POLARS, DUCKDB)


@dataclass(frozen=True)
class Answer:
    """What a tool took, and its figures."""

    seconds: float
    cpu: float
    memory: int
    found: dict[str, list[float]]


def made(folder: Path, rows: int) -> int:
    """Writes files of launches; returns their rows."""
    found, number, began = 0, 0, time.perf_counter()
    while found < rows:
        users = min(CHUNK_USERS, max(1000, (rows - found) // LAUNCHES))
        number += 1
        table = generator.field_data(users, number)
        generator.write(table, folder / "data" / f"{number:03}.parquet")
        found += table.num_rows
        left = (time.perf_counter() - began) / found * max(0, rows - found)
        print(f"generated {found:,} of {rows:,} rows, {left:.0f} s left", file=sys.stderr, flush=True)
    return found


def asked(tool: Tool, folder: Path) -> Answer | None:
    """Runs a tool in a process of its own, which ends with this one; None where it failed, which it says itself."""
    print(tool.name, file=sys.stderr, flush=True)
    words = ["prlimit", f"--data={TOO_MUCH_MEMORY}", "setpriv", "--pdeathsig", "KILL", sys.executable, "-c"]
    words += [BEFORE + tool.start + BEGIN + tool.ask + END]
    words += [f"{folder}/data/*.parquet", str(folder / "s"), json.dumps(SHARES)]
    spill = folder / "tmp"
    spill.mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(spill)}
    # What it says of an error and of its progress goes where ours goes.
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode:
        print(f"{tool.name}: exit code {done.returncode} (it may take 16 GiB of memory)", file=sys.stderr, flush=True)
        return None
    # DuckDB shows its progress on the same stream.
    return Answer(*json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Measures."""
    words = argparse.ArgumentParser(description="slowpath-fleet beside other tools on generated launches")
    words.add_argument("rows", type=int, nargs="?", default=20_000_000)
    words.add_argument("--dir", type=Path, default=PLACE, help="where the data go")
    options = words.parse_args()
    free, needed = shutil.disk_usage(options.dir).free, options.rows * DISK + (1 << 30)
    if free < needed:
        why = f"{options.dir} has {free / 1e9:.1f} GB free, {needed / 1e9:.1f} are needed"
        print(f"unavailable: {why}; name another directory with --dir, or fewer rows", file=sys.stderr)
        return 3
    with scratch("fleet", place=options.dir) as folder:
        return measured(folder, options.rows)


def measured(folder: Path, asked_for: int) -> int:
    """The table, and whether the limits hold."""
    (folder / "data").mkdir()
    rows = made(folder, asked_for)
    answers = {tool.name: asked(tool, folder) for tool in (INGESTING, *TOOLS)}
    size = sum(one.stat().st_size for one in (folder / "data").iterdir())
    store = sum(one.stat().st_size for one in (folder / "s").rglob("*") if one.is_file())
    print(f"{rows:,} rows, {size / 1e9:.2f} GB of Parquet, {store / 1e9:.2f} GB of store.\n")
    print("| what | s | s of CPU | million rows/s | peak memory, GiB | times pandas |")
    print("|---|---|---|---|---|---|")
    base = answers[PANDAS.name]
    for name, one in answers.items():
        if one is None:
            print(f"| {name} | failed | - | - | - | - |")
            continue
        times = f"{base.seconds / one.seconds:.1f}" if base and "one column" in name else "-"
        rate, memory = rows / one.seconds / 1e6, one.memory / 2**30
        print(f"| {name} | {one.seconds:.2f} | {one.cpu:.2f} | {rate:.1f} | {memory:.2f} | {times} |")
    mine = [answers[tool.name] for tool in (ONE, FIVE, SLICES)]
    marginal, exact, ingested = answers[ONE.name], answers[DUCKDB.name], answers[INGESTING.name]
    if not (base and marginal and exact and ingested):
        return 1
    pairs = [pair for value in exact.found for pair in zip(marginal.found[value], exact.found[value], strict=True)]
    off = max(abs(a / b - 1) for a, b in pairs)
    print(f"\nOur quantiles differ from exact ones by {off:.2%} at most.")
    fast = rows / marginal.seconds >= 25e6 and base.seconds / marginal.seconds >= 10
    bounded = all(one is not None and one.seconds < 60 and one.memory < MOST_MEMORY for one in mine)
    return 0 if fast and bounded and ingested.memory < MOST_MEMORY and off < 0.011 else 1


if __name__ == "__main__":
    sys.exit(main())
