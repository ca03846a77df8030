"""From field data to a store: judge every row, keep or set aside and count, aggregate what was kept once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from . import embedded, identity
from .cells import AGGREGATES, TOTAL
from .errors import FleetError, cannot, wrong_usage
from .normalise import judged_sql
from .regular_file import opened
from .schema import MEASURED, mapped_columns
from .sources import RawTable, expand, kind_of
from .sql_text import identifier, literal
from .store import MOST_VALUES, Batch, Store

# Different metrics of one source; more is a column of something else.
MOST_METRICS = 1000
# Rows of a row group: small enough that a few of them are held at once, large enough to be read fast.
ROW_GROUP = 122_880


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How the columns of the data are to be understood."""

    renames: dict[str, str] = field(default_factory=dict)
    # Columns to keep beyond the known ones; None: all.
    keep: list[str] | None = None
    # Metric of data that have no such column.
    metric: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What the first look at a source found."""

    counts: dict[str, int]
    kept: int
    units: dict[str, str]

    @property
    def rows(self) -> int:
        """All rows, kept or not."""
        return self.kept + sum(self.counts.values())


def ingest(store: Store, paths: list[Path], options: IngestOptions, progress: Callable[[str], None]) -> list[Batch]:
    """Adds the data below `paths` to the store; `progress` gets a line a source. Returns the batches that were added.

    What was ingested before (the same bytes) is left out. Raises `FleetError` at the first source that cannot be read;
    the sources before it are kept.
    """
    sources = [source for path in paths for source in expand(path)]
    if not sources:
        raise wrong_usage(
            "cannot ingest", str(paths[0]), "it holds no data", "give Parquet, CSV, JSON lines or recordings"
        )
    added = []
    with store.locked():
        for number, source in enumerate(sources, 1):
            digest = digest_of(source, options)
            if any(batch.digest == digest for batch in store.manifest.batches):
                progress(f"{source}: was ingested before, left out")
                continue
            progress(f"{source} ({number} of {len(sources)})")
            try:
                added.append(ingest_one(store, source, digest, options))
            except duckdb.OutOfMemoryException as error:
                why = f"it needs more than {embedded.MEMORY} at once: {first_line(error)}"
                remedy = "split it, or raise SLOWPATH_FLEET_MEMORY"
                raise cannot("cannot ingest", str(source), why, remedy) from error
            except duckdb.InterruptException:
                raise
            except (
                duckdb.Error,
                pa.ArrowException,
                OSError,
                EOFError,
                ValueError,
                OverflowError,
                RecursionError,
            ) as error:
                remedy = "check what the file is, and its name's ending"
                raise wrong_usage("cannot ingest", str(source), first_line(error), remedy) from error
    return added


def first_line(error: Exception) -> str:
    """The first line of an error's text; DuckDB adds hints for SQL that nobody here wrote."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def digest_of(source: Path, options: IngestOptions) -> str:
    """SHA-256 of what is read, and of what decides how it is read."""
    digest = hashlib.sha256(repr(options).encode())
    files = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    for file in files:
        with opened(file) as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def ingest_one(store: Store, source: Path, digest: str, options: IngestOptions) -> Batch:
    """One source into one batch."""
    kind = kind_of(source)
    if kind is None:
        remedy = "name it .parquet, .csv, .jsonl, .json (gzip: .csv.gz, .jsonl.gz) or give a recording"
        raise wrong_usage("cannot ingest", str(source), "its kind is not known by its name", remedy)
    connection = embedded.connect(store.scratch(), [source])
    con = connection.con
    try:
        raw = kind.load(con, source)
        columns = mapped_columns(
            [name for name in raw.columns if name not in raw.added],
            str(source),
            options.renames,
            options.keep,
            store.dimensions(),
        )
        check(source, columns, options)
        metric = options.metric if "metric" not in columns else None
        judged = judge(con, raw, columns, metric, store.manifest.units, source)
        name = digest[:16]
        sql = judged_sql(raw, columns, metric, judged.units)
        files = write_rows(con, store, sql, name) if judged.kept else []
        dimensions = [column for column in columns if column not in MEASURED]
        batch = describe(connection, store, files, dimensions)
        return finish(store, batch, judged, raw, name=name, source=source, digest=digest, users="user" in columns)
    finally:
        connection.disconnect()


def check(source: Path, columns: dict[str, str], options: IngestOptions) -> None:
    """What every source must have."""
    for name in ("value", "time"):
        if name not in columns:
            remedy = f"name the column that holds it: --rename COLUMN={name}"
            raise wrong_usage("cannot ingest", str(source), f"it has no column {name!r}", remedy)
    if "metric" not in columns and options.metric is None:
        remedy = "say what its values are: --metric time_to_ready"
        raise wrong_usage("cannot ingest", str(source), "it has no column 'metric'", remedy)


def judge(
    con: duckdb.DuckDBPyConnection,
    raw: RawTable,
    columns: dict[str, str],
    metric: str | None,
    known: dict[str, str],
    source: Path,
) -> Judged:
    """Counts rows by reason. A metric has one unit: the store's, else the one of most rows; others are a conflict."""
    sql = judged_sql(raw, columns, metric, None)
    found = con.execute(
        f"SELECT reason, CASE WHEN reason IS NULL THEN metric END AS metric, "
        f"CASE WHEN reason IS NULL THEN unit_ END AS unit, count(*) AS n FROM ({sql}) GROUP BY ALL "
        f"ORDER BY n DESC, metric, unit LIMIT {MOST_METRICS + 100}"
    ).fetchall()
    counts: dict[str, int] = {}
    units: dict[str, str] = {}
    kept = 0
    for reason, name, unit, n in found:
        if reason is not None:
            counts[reason] = counts.get(reason, 0) + int(n)
        elif units.setdefault(name, known.get(name, unit)) == unit:
            kept += int(n)
        else:
            counts["unit_conflict"] = counts.get("unit_conflict", 0) + int(n)
    if len(units) > MOST_METRICS:
        why = f"its column 'metric' has more than {MOST_METRICS} values"
        raise wrong_usage("cannot ingest", str(source), why, "the name of the measured thing belongs there")
    for reason, n in raw.dropped().items():
        counts[reason] = counts.get(reason, 0) + n
    return Judged(counts, kept, units)


def write_rows(con: duckdb.DuckDBPyConnection, store: Store, sql: str, name: str) -> list[str]:
    """Writes the rows that pass, a directory a day, under the scratch directory; returns names relative to it."""
    target = store.scratch() / "rows"
    bucket = f"(user_key % {identity.BUCKETS})::SMALLINT AS user_bucket"
    con.execute(
        f"COPY (SELECT * EXCLUDE (reason, unit_), {bucket} FROM ({sql}) WHERE reason IS NULL) TO "
        f"{literal(str(target))} (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day), ROW_GROUP_SIZE {ROW_GROUP}, "
        f"FILENAME_PATTERN {literal(name + '_{i}')}, OVERWRITE_OR_IGNORE true)"
    )
    return sorted(str(path.relative_to(target)) for path in target.rglob("*.parquet"))


@dataclass(frozen=True, slots=True)
class Described:
    """What was written."""

    files: list[str]
    launches: int
    dimensions: dict[str, int]


def describe(connection: Any, store: Store, files: list[str], dimensions: list[str]) -> Described:
    """Counts the values of every dimension and writes the cells."""
    if not files:
        return Described([], 0, {})
    con = connection.con
    names = ", ".join(literal(str(store.scratch() / "rows" / file)) for file in files)
    con.execute(
        f"CREATE OR REPLACE VIEW kept AS SELECT * FROM read_parquet([{names}], hive_partitioning = true, "
        "hive_types = {'day': DATE})"
    )
    counts = "".join(f", approx_count_distinct({identifier(one)})" for one in dimensions)
    found = con.execute(f"SELECT sum(weight){counts} FROM kept").fetchall()[0]
    values = {one: int(n) for one, n in zip(dimensions, found[1:], strict=True)}
    # One query for all dimensions: Ibis takes as long to compile it as DuckDB to run it on a small file.
    slice_of = {TOTAL: literal("")} | {one: identifier(one) for one in dimensions if values[one] <= MOST_VALUES}
    con.execute(f"CREATE OR REPLACE VIEW sliced AS SELECT *, {slice_of[TOTAL]} AS slice_ FROM kept")
    rows = connection.table("sliced")
    for kind, make in AGGREGATES.items():
        con.execute(f"CREATE OR REPLACE TEMP TABLE made ({make.columns})")
        cells = connection.compile(make.expression(rows, "slice_"))
        for dimension, value in slice_of.items():
            con.execute(f"CREATE OR REPLACE VIEW sliced AS SELECT *, {value} AS slice_ FROM kept")
            con.execute(f"INSERT INTO made SELECT {literal(dimension)}, * EXCLUDE (dimension) FROM ({cells})")
        target = literal(str(store.scratch() / f"{kind}.parquet"))
        con.execute(f"COPY (SELECT * FROM made ORDER BY ALL) TO {target} (FORMAT parquet, COMPRESSION zstd)")
    con.execute("DROP TABLE made")
    return Described(files, int(found[0]), values)


def finish(
    store: Store, made: Described, judged: Judged, raw: RawTable, *, name: str, source: Path, digest: str, users: bool
) -> Batch:
    """Moves the files of a batch to their places and lists it."""
    for file in made.files:
        place = store.directory / "rows" / file
        place.parent.mkdir(parents=True, exist_ok=True)
        (store.scratch() / "rows" / file).replace(place)
    for kind in AGGREGATES if made.files else ():
        (store.directory / kind).mkdir(exist_ok=True)
        (store.scratch() / f"{kind}.parquet").replace(store.directory / kind / f"{name}.parquet")
    batch = Batch(
        name=name,
        source=str(source),
        digest=digest,
        rows=judged.rows,
        kept=judged.kept,
        launches=made.launches,
        set_aside=dict(sorted(judged.counts.items())),
        days=sorted({Path(file).parent.name.removeprefix("day=") for file in made.files}),
        files=[f"rows/{file}" for file in made.files],
        dimensions=made.dimensions,
        has_users=users,
    )
    store.manifest.batches.append(batch)
    store.manifest.units.update(judged.units)
    try:
        store.write_manifest()
    except OSError as error:
        store.manifest.batches.pop()
        raise FleetError("cannot write", str(store.directory), str(error), "free space there", 3) from error
    return batch
