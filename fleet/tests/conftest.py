"""Stores that tests share, made once a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from slowpath_fleet import generator
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Store

USERS = 12_000


def made(directory: Path, source: Path) -> Store:
    """A store with one source."""
    store = Store.create(directory)
    ingest(store, [source], IngestOptions(), lambda line: None)
    return store


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Story 1's shape, from the generator."""
    folder = tmp_path_factory.mktemp("story")
    generator.write(generator.field_data(USERS, 1), folder / "launches.parquet")
    return made(folder / "store", folder / "launches.parquet")


@pytest.fixture(scope="session")
def null(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The same without any difference."""
    folder = tmp_path_factory.mktemp("null")
    generator.write(generator.field_data(3_000, 2, truth=generator.Truth.null()), folder / "launches.parquet")
    return made(folder / "store", folder / "launches.parquet")
