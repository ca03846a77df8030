"""Quoting for SQL text that is built from names and values of foreign data."""

from __future__ import annotations


def identifier(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""').replace("\0", "") + '"'


def literal(text: str) -> str:
    """A text as an SQL string."""
    return "'" + text.replace("'", "''").replace("\0", "") + "'"


def literals(texts: list[str]) -> str:
    """A list of texts, as DuckDB's functions take it."""
    return "[" + ", ".join(literal(text) for text in texts) + "]"
