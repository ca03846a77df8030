"""The same commands on a real Spark cluster: cells are those of DuckDB, and a worker that dies takes nothing away."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from slowpath_fleet import Fleet
from slowpath_fleet.cells import AGGREGATES, TOTAL
from slowpath_fleet.engine import Engine
from slowpath_fleet.spark_engine import SparkEngine
from slowpath_fleet.store import Store

from .same import COMMANDS, alike, sorted_cells
from .standalone import Cluster, cluster

METRIC = "time_to_ready"
BATCHES = 3


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.mark.parametrize("kind", AGGREGATES)
def test_every_cell_equals_duckdbs(spark: Cluster, compared: Store, kind: str) -> None:
    here, there = Engine(compared), SparkEngine(compared, spark.master)
    try:
        for dimension in (TOTAL, *compared.dimensions()):
            expected = sorted_cells(here, kind, dimension)
            assert expected and sorted_cells(there, kind, dimension) == expected, dimension
    finally:
        here.close()
        there.close()


@pytest.mark.parametrize(("command", "options"), COMMANDS)
def test_commands_print_what_they_print_on_duckdb(
    spark: Cluster, compared: Store, command: str, options: dict[str, Any]
) -> None:
    fleet = Fleet(compared.directory)
    here = json.loads(getattr(fleet, command)(**options).json())
    there = json.loads(getattr(fleet, command)(**options, backend=spark.master).json())
    assert alike(here, there), command


def test_a_store_is_named_from_where_one_stands(
    spark: Cluster, compared: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(compared.directory.parent)
    rows = Fleet("s").compare(by="device", backend=spark.master).result.rows
    assert sum(row.n for row in rows) == sum(batch.launches for batch in compared.manifest.batches)


def test_a_worker_that_dies_in_the_middle_loses_nothing(spark: Cluster, compared: Store) -> None:
    here = Engine(compared)
    expected = sorted_cells(here, "groups", "device")
    here.close()
    engine = SparkEngine(compared, spark.master)
    try:
        # A task a file, so that a worker that dies leaves tasks behind.
        for name in ("maxPartitionBytes", "openCostInBytes"):
            engine.session.conf.set(f"spark.sql.files.{name}", "1m")
        tracker = engine.session.sparkContext.statusTracker()
        engine.rows()
        killed: list[tuple[int, int]] = []

        def kill() -> None:
            # When the first tasks of a stage are done and others are not: some results are on that worker.
            end = time.monotonic() + 60
            while not killed and time.monotonic() < end:
                for stage in tracker.getActiveStageIds():
                    info = tracker.getStageInfo(stage)
                    if info and info.numTasks >= 16 and 2 <= info.numCompletedTasks < info.numTasks - 4:
                        spark.kill(0)
                        killed.append((info.numCompletedTasks, info.numTasks))
                        return
                time.sleep(0.002)

        watcher = threading.Thread(target=kill)
        watcher.start()
        found = sorted_cells(engine, "groups", "device")
        watcher.join()
        assert killed, "the query ended before a worker could be killed"
        assert spark.workers[0].wait(timeout=10) != 0
        assert found == expected
    finally:
        engine.close()
