"""How many rows a second each tool answers for, and with how much memory; run by bench/fleet/run.

The same launches for all: Parquet files of generated data. A tool runs in a process of its own, so its peak of memory
is its own; time is that of the query, from files to figures, without the start of Python. Ours answer from the cells
that `ingest` made; what that took is a line of its own. Exact quantiles of the others are compared with ours. Exit code
1 where a marginal takes more than 1 s for 25 million rows or a tenth of pandas, or anything 60 s or 4 GiB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from slowpath_fleet import generator
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Store

CHUNK_USERS = 150_000
# What a machine that does this may give.
MOST_MEMORY = 4 << 30
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
    found = 0
    while found < rows:
        number = len(list((folder / "data").iterdir()))
        users = min(CHUNK_USERS, max(1000, (rows - found) // 13))
        table = generator.field_data(users, number + 1)
        generator.write(table, folder / "data" / f"{number:03}.parquet")
        found += table.num_rows
        print(f"generated {found:,} of {rows:,}", file=sys.stderr)
    return found


def asked(tool: Tool, folder: Path) -> Answer:
    """Runs a tool."""
    words = [sys.executable, "-c", BEFORE + tool.start + BEGIN + tool.ask + END]
    words += [f"{folder}/data/*.parquet", str(folder / "s"), json.dumps(SHARES)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    # DuckDB shows its progress on the same stream.
    return Answer(*json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Measures."""
    with tempfile.TemporaryDirectory(dir="target") as name:
        folder = Path(name)
        (folder / "data").mkdir()
        rows = made(folder, int(sys.argv[1]))
        began, cpu = time.perf_counter(), time.process_time()
        store = Store.create(folder / "s")
        ingest(store, [folder / "data"], IngestOptions(), lambda line: print(line, file=sys.stderr))
        took, spent = time.perf_counter() - began, time.process_time() - cpu
        size = sum(one.stat().st_size for one in (folder / "data").iterdir())
        print(f"{rows:,} rows, {size / 1e9:.2f} GB of Parquet.\n")
        print("| what | s | s of CPU | million rows/s | peak memory, GiB | times pandas |")
        print("|---|---|---|---|---|---|")
        print(f"| slowpath-fleet, ingest (once) | {took:.1f} | {spent:.1f} | {rows / took / 1e6:.2f} | - | - |")
        answers = {tool.name: asked(tool, folder) for tool in TOOLS}
        base = answers[PANDAS.name].seconds
        for tool, one in answers.items():
            times = f"{base / one.seconds:.1f}" if "one column" in tool else "-"
            rate, memory = rows / one.seconds / 1e6, one.memory / 2**30
            print(f"| {tool} | {one.seconds:.2f} | {one.cpu:.2f} | {rate:.1f} | {memory:.2f} | {times} |")
        ours, exact = answers[ONE.name].found, answers[DUCKDB.name].found
        off = max(abs(a / b - 1) for value in exact for a, b in zip(ours[value], exact[value], strict=True))
        print(f"\nOur quantiles differ from exact ones by {off:.2%} at most.")
        mine = [answers[tool.name] for tool in (ONE, FIVE, SLICES)]
        fast = rows / mine[0].seconds >= 25e6 and base / mine[0].seconds >= 10
        bounded = all(one.seconds < 60 and one.memory < MOST_MEMORY for one in mine)
        return 0 if fast and bounded and off < 0.011 else 1


if __name__ == "__main__":
    sys.exit(main())
