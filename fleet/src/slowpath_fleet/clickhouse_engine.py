"""Queries on a ClickHouse server: rows of the store are loaded into a table there, and counted there.

Ibis compiles the same expressions to the server's SQL; they are sent over HTTP from here, because Ibis's own client
asks for functions that servers of Debian (18.16) do not have. A batch of the store is loaded once: its rows lie in a
partition of its name, and it counts once `slowpath_batches` lists it.
"""

from __future__ import annotations

import http.client
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import ibis
import pyarrow as pa
import pyarrow.csv
import sqlglot
from ibis.backends.sql.compilers import ClickHouseCompiler

from .engine import RowEngine
from .errors import cannot, wrong_usage
from .schema import MISSING
from .sql_text import identifier, literal
from .store import Batch, Store

ROWS, BATCHES = "slowpath_rows", "slowpath_batches"
SECONDS = 600
# Columns of every row that are no dimensions: name, type there, type of Ibis, how the store's row becomes it.
MEASURED = (
    ("batch", "String", "string", ""),
    ("day", "Date", "date", "day"),
    ("metric", "String", "string", "metric"),
    ("value", "Float64", "float64", "value"),
    ("bin", "Int16", "int16", "bin"),
    ("place", "UInt8", "uint8", "place"),
    ("weight", "Int64", "int64", "weight"),
    ("user_key", "Nullable(Int64)", "int64", "user_key"),
    ("user_bucket", "Nullable(Int16)", "int16", "user_bucket"),
)


class Server:
    """An address `clickhouse://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`; the port is that of HTTP."""

    def __init__(self, address: str) -> None:
        try:
            parts = urlsplit(address)
            self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 8123
        except ValueError as error:
            remedy = "write clickhouse://HOST:PORT/DATABASE"
            raise wrong_usage("cannot use the backend", address, str(error), remedy) from error
        self.user, self.password = (unquote(one) if one else one for one in (parts.username, parts.password))
        self.database = parts.path.strip("/") or "default"
        # Without the password: it is shown in errors.
        self.shown = f"clickhouse://{self.host}:{self.port}/{self.database}"

    def query(self, sql: str, body: Any = None) -> bytes:
        """Runs one statement; `body` is data for an INSERT."""
        words = {"database": self.database}
        headers = {}
        if self.user:
            headers = {"X-ClickHouse-User": self.user, "X-ClickHouse-Key": self.password or ""}
        if body is not None:
            words["query"] = sql
        connection = http.client.HTTPConnection(self.host, self.port, timeout=SECONDS)
        try:
            connection.request("POST", f"/?{urlencode(words, quote_via=quote)}", body or sql.encode(), headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            remedy = "check that the server runs and listens for HTTP there"
            raise cannot("cannot reach ClickHouse", self.shown, str(error), remedy) from error
        finally:
            connection.close()
        if answer.status != 200:
            why = content.decode("utf-8", "replace").strip().split(", e.what()")[0][:300]
            raise cannot("ClickHouse refuses a query", self.shown, why, "check the server's version and its limits")
        return content


class ClickHouseEngine(RowEngine):
    """A table on a server with the rows of a store."""

    def __init__(self, store: Store, address: str) -> None:
        super().__init__(store)
        self.server = Server(address)
        self.dimensions = sorted(store.dimensions())

    def rows(self) -> Any:
        """The rows of the store's batches; those that the server lacks are loaded."""
        if self._rows is None:
            batches = self.store.batches_with_rows()
            self.load(batches)
            columns = {name: kind for name, _, kind, _ in MEASURED} | dict.fromkeys(self.dimensions, "string")
            table: Any = ibis.table(columns, name=ROWS)
            self._rows = table.filter(table.batch.isin([one.name for one in batches]))
        return self._rows

    def fetch(self, expression: Any) -> pa.Table:
        """Runs it on the server."""
        types = {name: kind.to_pyarrow() for name, kind in expression.schema().items()}
        # The server's bool is a number.
        numbers = {name: pa.uint8() if kind == pa.bool_() else kind for name, kind in types.items()}
        content = self.server.query(f"{compiled(expression)} FORMAT CSVWithNames")
        options = pyarrow.csv.ConvertOptions(
            column_types=numbers, null_values=["\\N"], strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=options,
        )
        return table.cast(pa.schema(types.items()))

    def load(self, batches: list[Batch]) -> None:
        """Loads what is not there yet."""
        columns = [f"{identifier(name)} {kind}" for name, kind, _, _ in MEASURED]
        self.server.query(
            f"CREATE TABLE IF NOT EXISTS {ROWS} ({', '.join(columns)}) ENGINE = MergeTree PARTITION BY batch "
            "ORDER BY (metric, day)"
        )
        self.server.query(f"CREATE TABLE IF NOT EXISTS {BATCHES} (batch String, rows Int64) ENGINE = Log")
        self.add_columns()
        known = set(self.server.query(f"SELECT batch FROM {BATCHES} FORMAT TabSeparated").decode().split())
        for batch in batches:
            if batch.name not in known:
                self.load_one(batch)

    def add_columns(self) -> None:
        """A column for every dimension; earlier rows lack it."""
        there = self.server.query(f"DESCRIBE TABLE {ROWS} FORMAT CSV").decode()
        known = {line.split('","')[0].strip('"').replace('""', '"') for line in there.splitlines()}
        for name in self.dimensions:
            if "`" in name or "\\" in name or not name.isprintable():
                why = "ClickHouse cannot have a column of this name"
                raise wrong_usage("cannot load", name, why, "ingest the data with --rename")
            if name not in known:
                self.server.query(f"ALTER TABLE {ROWS} ADD COLUMN {identifier(name)} String DEFAULT '{MISSING}'")

    def load_one(self, batch: Batch) -> None:
        """Rows of one batch. What an interrupted load left of it is dropped first."""
        if not re.fullmatch(r"[0-9a-f]+", batch.name):
            raise cannot("cannot load", batch.name, "it is no name of a batch", "ingest the data anew")
        self.server.query(f"ALTER TABLE {ROWS} DROP PARTITION '{batch.name}'")
        names = ", ".join(literal(name) for name in self.store.row_files([batch]))
        own = [name for name in self.dimensions if name in batch.dimensions]
        columns = [source for *_, source in MEASURED[1:]] + [identifier(name) for name in own]
        file = Path(self.spill.name) / f"{batch.name}.csv"
        rows = f"read_parquet([{names}], hive_partitioning = true, hive_types = {{'day': DATE}})"
        # The server takes a text that begins with ' for a quoted one, so all texts are quoted.
        quoted = ", ".join(["metric", *(identifier(name) for name in own)])
        self.connection.con.execute(
            f"COPY (SELECT {literal(batch.name)}, {', '.join(columns)} FROM {rows}) TO {literal(str(file))} "
            f"(FORMAT csv, HEADER false, NULLSTR '\\N', FORCE_QUOTE ({quoted}))"
        )
        named = ", ".join(identifier(name) for name in [*(name for name, *_ in MEASURED), *own])
        try:
            with file.open("rb") as content:
                self.server.query(f"INSERT INTO {ROWS} ({named}) FORMAT CSV", content)
        finally:
            file.unlink()
        found = int(self.server.query(f"SELECT count(*) FROM {ROWS} WHERE batch = '{batch.name}'"))
        if found != batch.kept:
            why = f"it holds {found} of {batch.kept} rows of a batch"
            raise cannot("cannot load", self.server.shown, why, "try again")
        self.server.query(f"INSERT INTO {BATCHES} VALUES ('{batch.name}', {found})")


def compiled(expression: Any) -> str:
    """SQL of ClickHouse, in which distinct values are counted exactly."""

    def exact(node: Any) -> Any:
        if isinstance(node, sqlglot.exp.ApproxDistinct):
            return sqlglot.exp.Anonymous(this="uniqExact", expressions=[node.this])
        if isinstance(node, sqlglot.exp.Anonymous) and node.this == "uniqIf":
            node.set("this", "uniqExactIf")
        return node

    return str(ClickHouseCompiler().to_sqlglot(expression).transform(exact).sql(dialect="clickhouse"))
