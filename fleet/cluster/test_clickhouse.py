"""Queries on Debian's ClickHouse: cells are those of DuckDB, a batch is loaded once, an interrupted one anew."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slowpath_fleet import Fleet, cli
from slowpath_fleet.cells import AGGREGATES, TOTAL
from slowpath_fleet.clickhouse_engine import BATCHES, ROWS, ClickHouseEngine, Server
from slowpath_fleet.engine import Engine
from slowpath_fleet.errors import FleetError
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Store

from .lifetime import end_with_parent
from .same import COMMANDS, alike, sorted_cells

CONFIG = """<yandex>
<logger><level>warning</level><console>1</console></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><mark_cache_size>5368709</mark_cache_size>
<users_config>users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database>
</yandex>"""
USERS = """<yandex><profiles><default><max_memory_usage>2000000000</max_memory_usage></default></profiles>
<quotas><default></default></quotas><users><default><password>secret word</password>
<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>"""


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of this run alone."""
    binary = shutil.which("clickhouse-server")
    assert binary, "apt-get install --no-install-recommends clickhouse-server"
    folder = tmp_path_factory.mktemp("clickhouse")
    http = free_port()
    (folder / "config.xml").write_text(CONFIG.format(http=http, tcp=free_port(), folder=folder))
    (folder / "users.xml").write_text(USERS)
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [binary, f"--config-file={folder}/config.xml"],
            cwd=folder,
            stdout=log,
            stderr=log,
            preexec_fn=end_with_parent,
        )
    where = f"clickhouse://default:secret%20word@127.0.0.1:{http}"
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                Server(where).query("SELECT 1")
                break
            except FleetError:
                assert server.poll() is None, (folder / "log").read_text()[-2000:]
                time.sleep(0.2)
        yield where
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize("kind", AGGREGATES)
def test_every_cell_equals_duckdbs(address: str, compared: Store, kind: str) -> None:
    here, there = Engine(compared), ClickHouseEngine(compared, address)
    try:
        for dimension in (TOTAL, *compared.dimensions()):
            expected = sorted_cells(here, kind, dimension)
            assert expected and sorted_cells(there, kind, dimension) == expected, dimension
    finally:
        here.close()
        there.close()


@pytest.mark.parametrize(("command", "options"), COMMANDS)
def test_commands_print_what_they_print_on_duckdb(
    address: str, compared: Store, command: str, options: dict[str, Any]
) -> None:
    fleet = Fleet(compared.directory)
    here = json.loads(getattr(fleet, command)(**options).json())
    there = json.loads(getattr(fleet, command)(**options, backend=address).json())
    assert alike(here, there), command


def test_a_batch_is_loaded_once_and_an_interrupted_one_anew(address: str, compared: Store) -> None:
    server = Server(address)
    rows = sum(batch.kept for batch in compared.manifest.batches)
    names = ", ".join(f"'{batch.name}'" for batch in compared.manifest.batches)

    def loaded() -> int:
        engine = ClickHouseEngine(compared, address)
        engine.rows()
        engine.close()
        return int(server.query(f"SELECT count(*) FROM {ROWS} WHERE batch IN ({names})"))

    assert loaded() == rows and loaded() == rows
    # As if the load of the batches had ended in the middle.
    server.query(f"DROP TABLE {BATCHES}")
    assert loaded() == rows


def test_names_and_values_that_break_out_of_text_do_not(address: str, tmp_path: Path) -> None:
    evil = ["');DROP TABLE slowpath_rows;--", "a\\'b", "\\N", 'x"y', "line\nbreak", "tab\t,comma", "ü"]
    table = {
        "time": ["2026-03-01"] * 700,
        "user": [f"u{one}" for one in range(700)],
        "metric": ["it's \\ a metric"] * 700,
        "value": [float(one + 1) for one in range(700)],
        'it\'s a "column"': [evil[one % 7] for one in range(700)],
    }
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    made = Store.create(tmp_path / "s")
    ingest(made, [tmp_path / "a.parquet"], IngestOptions(), lambda line: None)
    fleet = Fleet(made.directory)
    here = fleet.compare(by='it\'s a "column"')
    there = fleet.compare(by='it\'s a "column"', backend=address)
    assert {row.value for row in here.result.rows} == set(evil)
    assert json.loads(here.json()) == json.loads(there.json())


def test_a_server_that_is_not_there_is_what_this_machine_cannot_do(
    compared: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"clickhouse://user:hidden@127.0.0.1:{free_port()}"
    assert cli.main(["compare", str(compared.directory), "--backend", address]) == 3
    err = capsys.readouterr().err
    assert "cannot reach ClickHouse" in err and "hidden" not in err
