"""A recording opened for SQL: its tables and views, and nothing else of this machine."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb

from .. import embedded
from ..errors import wrong_usage
from ..sources.json_text import whole
from ..sources.recording import MANIFEST, recognises
from ..sql_text import identifier, literal
from .tables import TABLES
from .views import VIEWS

# Rows of an answer at most: it is held in memory.
MOST_ROWS = 1_000_000


class Recorded:
    """An open recording."""

    def __init__(self, path: Path) -> None:
        """Reads the manifest and defines tables and views."""
        if not recognises(path):
            why = f"it is no directory with a {MANIFEST}"
            raise wrong_usage("cannot query", str(path), why, "name a recording: slowpath record, or slowpath import")
        self.path = path.resolve()
        self.manifest = self._manifest(path)
        self.spill = tempfile.TemporaryDirectory(prefix="slowpath-query-")
        self.con = duckdb.connect()
        try:
            self._define()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Recorded:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Forgets everything."""
        self.con.close()
        self.spill.cleanup()

    def _manifest(self, path: Path) -> dict[str, Any]:
        try:
            found = json.loads(whole(path / MANIFEST, "record again"))
            if not isinstance(found, dict):
                raise ValueError("it is no object")
        except (ValueError, RecursionError) as error:
            why = f"its manifest cannot be read ({error})"
            raise wrong_usage("cannot query", str(path), why, "record or import again") from error
        return found

    def _segments(self, table: str) -> list[Path]:
        """Whole segments of a table, which lie in the recording whatever the manifest says."""
        segments = self.manifest.get("segments")
        parts = segments if isinstance(segments, list) else []
        named = [str(one.get("file")) for one in parts if isinstance(one, dict) and one.get("table") == table]
        files = [(self.path / name).resolve() for name in named]
        return [file for file in files if file.is_relative_to(self.path) and file.is_file()]

    def _define(self) -> None:
        files = {table: self._segments(table) for table in TABLES}
        everything = [file for some in files.values() for file in some]
        embedded.configure(self.con, Path(self.spill.name), everything)
        for table, columns in TABLES.items():
            nothing = ", ".join(f"NULL::{kind} AS {identifier(name)}" for name, kind in columns.items())
            sql = f"SELECT {nothing} WHERE false"
            if files[table]:
                names = ", ".join(literal(str(file)) for file in files[table])
                sql += f" UNION ALL BY NAME SELECT * FROM read_parquet([{names}], union_by_name = true)"
            self._view(table, sql)
        self._view("recording", self._row())
        for view in VIEWS:
            self._view(view.name, view.sql)

    def _view(self, name: str, sql: str) -> None:
        try:
            self.con.execute(f"CREATE VIEW {identifier(name)} AS {sql}")
        except duckdb.Error as error:
            why = f"table {name}: {_first_line(error)}"
            raise wrong_usage("cannot query", str(self.path), why, "record or import again") from error

    def _row(self) -> str:
        """The manifest's main values as one row."""
        launch = self.manifest.get("launch")
        launch = launch if isinstance(launch, dict) else {}
        command = self.manifest.get("command")
        words = [str(word) for word in command] if isinstance(command, list) else []
        numbers = {
            "started": self.manifest.get("started"),
            "ended": self.manifest.get("ended"),
            "released": launch.get("released"),
            "ready": launch.get("ready"),
        }
        texts = {
            "command": " ".join(words),
            "ready_when": launch.get("ready_when"),
            "outcome": launch.get("outcome"),
        }
        values = [f"{_integer(value)}::HUGEINT AS {name}" for name, value in numbers.items()]
        values += [f"{_text(value)}::VARCHAR AS {name}" for name, value in texts.items()]
        return "SELECT " + ", ".join(values)

    def ask(self, sql: str) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
        """Columns (name, type) and rows of one SELECT."""
        remedy = "`slowpath query RECORDING` lists the views and their columns"
        try:
            statements = self.con.extract_statements(sql)
        except duckdb.Error as error:
            raise wrong_usage("cannot query", "", _first_line(error), remedy) from error
        # EXPLAIN and DESCRIBE read too; everything else would change something.
        allowed = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
        if len(statements) != 1 or statements[0].type not in allowed:
            why = "a query is one SELECT: a recording is never changed"
            raise wrong_usage("cannot query", "", why, "use SELECT, WITH or FROM")
        try:
            cursor = self.con.execute(statements[0])
            columns = [(str(one[0]), str(one[1])) for one in cursor.description or []]
            rows = cursor.fetchmany(MOST_ROWS + 1)
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            raise wrong_usage("cannot query", "", _first_line(error), remedy) from error
        if len(rows) > MOST_ROWS:
            raise wrong_usage("cannot query", "", f"the answer has more than {MOST_ROWS:,} rows", "add LIMIT")
        return columns, rows


def _integer(value: object) -> str:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else "NULL"


def _text(value: object) -> str:
    return literal(value) if isinstance(value, str) else "NULL"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
