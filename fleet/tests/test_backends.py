"""Engines by name: what is not there, or not known, is said before anything is computed."""

import pytest

from slowpath_fleet import cli
from slowpath_fleet.backends import BACKENDS
from slowpath_fleet.clickhouse_engine import Server, compiled
from slowpath_fleet.store import Store


def test_an_engine_of_no_known_name_is_wrong_usage(story: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", str(story.directory), "--backend", "oracle://x"]) == 2
    err = capsys.readouterr().err
    assert all(one.example in err for one in BACKENDS)


def test_spark_that_is_not_installed_is_what_this_machine_cannot_do(
    story: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["compare", str(story.directory), "--backend", "spark://127.0.0.1:1"]) == 3
    assert "pip install 'pyspark" in capsys.readouterr().err


def test_an_address_is_taken_apart_and_its_password_is_never_shown() -> None:
    server = Server("clickhouse://ann:a%2Fb@db.example:9000/field")
    assert (server.host, server.port, server.user, server.password) == ("db.example", 9000, "ann", "a/b")
    assert server.database == "field" and server.shown == "clickhouse://db.example:9000/field"
    assert Server("clickhouse://localhost").port == 8123


def test_clickhouse_counts_distinct_users_exactly() -> None:
    import ibis

    rows = ibis.table({"user_key": "int64", "device": "string"}, name="rows")
    sql = compiled(
        rows.group_by("device").agg(a=rows.user_key.nunique(), b=rows.user_key.nunique(where=rows.device == "M"))
    )
    assert "uniqExact(" in sql and "uniqExactIf(" in sql and "uniq(" not in sql
