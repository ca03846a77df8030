"""CSV and TSV, plain or compressed with gzip or zstd. Everything is read as text: what is a number is decided later."""

from __future__ import annotations

from pathlib import Path

import duckdb

from ..sql_text import literal
from .raw_table import RawTable, SourceKind, columns_of

SUFFIXES = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst")


def recognises(path: Path) -> bool:
    """By the name."""
    return path.name.lower().endswith(SUFFIXES)


def load(con: duckdb.DuckDBPyConnection, path: Path) -> RawTable:
    """Rows with a wrong number of fields, broken quotes or broken UTF-8 are counted by DuckDB's rejects table."""
    separator = "\t" if ".tsv" in path.name.lower() else ","
    con.execute("DROP TABLE IF EXISTS rejected_rows; DROP TABLE IF EXISTS rejected_scans")
    relation = (
        f"read_csv({literal(str(path))}, header = true, all_varchar = true, delim = {literal(separator)}, "
        "quote = '\"', escape = '\"', store_rejects = true, rejects_table = 'rejected_rows', "
        "rejects_scan = 'rejected_scans', rejects_limit = 0, max_line_size = 2000000)"
    )

    def dropped() -> dict[str, int]:
        try:
            # One row can have several errors; a scan has a number of its own, the last one counts.
            found = con.execute(
                "SELECT count(DISTINCT line) FROM rejected_rows "
                "WHERE scan_id = (SELECT max(scan_id) FROM rejected_rows)"
            ).fetchall()
        except duckdb.CatalogException:
            return {}
        return {"malformed_row": int(found[0][0])} if found[0][0] else {}

    return RawTable(relation, columns_of(con, relation), dropped=dropped)


DELIMITED = SourceKind("csv", recognises, load)
