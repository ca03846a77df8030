"""The store that engines are compared on."""

from __future__ import annotations

import pytest

from slowpath_fleet import generator
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Store

BATCHES = 3


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Several batches, so several files a day; the last one lacks a column."""
    folder = tmp_path_factory.mktemp("data")
    made = Store.create(folder / "s")
    for seed in range(BATCHES):
        table = generator.field_data(4000, seed + 1)
        if seed == BATCHES - 1:
            table = table.drop_columns(["navigation"])
        generator.write(table, folder / f"{seed}.parquet")
        ingest(made, [folder / f"{seed}.parquet"], IngestOptions(), lambda line: None)
    return made
