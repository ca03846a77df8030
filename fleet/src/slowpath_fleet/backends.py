"""Engines that queries can run on, one declaration each; `--backend` names one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .clickhouse_engine import ClickHouseEngine
from .engine import Engine
from .errors import wrong_usage
from .spark_engine import SparkEngine
from .store import Store

DEFAULT = "duckdb"


@dataclass(frozen=True, slots=True)
class Backend:
    """How an engine is named, and how it is started for a store."""

    # Whole name, or beginning of an address.
    prefix: str
    example: str
    start: Callable[[Store, str], Engine]

    def takes(self, name: str) -> bool:
        """Whether the name is meant for it."""
        return name.startswith(self.prefix) if self.prefix.endswith("//") else name == self.prefix


BACKENDS: tuple[Backend, ...] = (
    Backend(DEFAULT, DEFAULT, lambda store, _name: Engine(store)),
    Backend("spark://", "spark://HOST:PORT", SparkEngine),
    Backend("clickhouse://", "clickhouse://HOST:PORT", ClickHouseEngine),
)


def started(store: Store, name: str) -> Engine:
    """The engine of that name on a store."""
    chosen = next((one for one in BACKENDS if one.takes(name)), None)
    if chosen is None:
        known = ", ".join(one.example for one in BACKENDS)
        raise wrong_usage("cannot use the backend", name, "there is none of that name", f"use one of: {known}")
    return chosen.start(store, name)
