"""Files that somebody else put where fleet reads or writes: links are not followed, FIFOs are not waited for."""

import json
import os
from pathlib import Path

import pytest

from slowpath_fleet import cli
from slowpath_fleet.regular_file import replacing

LINES = "time,user,metric,value\n" + "".join(f"2026-03-01,u{n},m,{n + 1}\n" for n in range(20))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text(LINES)
    assert cli.main(["ingest", str(tmp_path / "a.csv"), "-o", str(tmp_path / "s")]) == 0
    return tmp_path / "s"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """What a link must not lead to."""
    (tmp_path / "target").write_text("mine")
    return tmp_path / "target"


@pytest.mark.parametrize("words", [["compare", "STORE", "--by", "m", "--html"], ["generate", "--users", "9", "-o"]])
def test_what_is_written_replaces_a_file_and_does_not_follow_a_link(
    store: Path, target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    (tmp_path / "b.csv").write_text("time,user,device,metric,value\n2026-03-02,u,M1,m,3\n")
    assert cli.main(["ingest", str(tmp_path / "b.csv"), "-o", str(store), "--rename", "device=m_"]) == 0
    words = [str(store) if word == "STORE" else "m_of_data" if word == "m" else word for word in words]
    out = tmp_path / "out"
    out.symlink_to(target)
    assert cli.main([*words, str(out)]) == 2 and "it is a link" in capsys.readouterr().err
    assert target.read_text() == "mine" and out.is_symlink()
    out.unlink()
    out.write_text("old")
    out.chmod(0o644)
    before = out.stat().st_ino
    assert cli.main([*words, str(out)]) == 0
    assert out.stat().st_mode & 0o777 == 0o600 and out.stat().st_ino != before
    assert not list(tmp_path.glob(".out*"))


def test_a_file_that_could_not_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "out") as file:
        file.write_text("new")
        raise ZeroDivisionError
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("name", [".lock", "store.json.new"])
def test_an_ingest_follows_no_link_in_the_store(store: Path, target: Path, tmp_path: Path, name: str) -> None:
    (store / name).unlink(missing_ok=True)
    (store / name).symlink_to(target)
    (tmp_path / "b.csv").write_text(LINES.replace(",u1", ",w1"))
    assert cli.main(["ingest", str(tmp_path / "b.csv"), "-o", str(store)]) == (3 if name == ".lock" else 0)
    assert target.read_text() == "mine"


def test_nobody_writes_to_the_store_of_another_user(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: store.stat().st_uid + 1)
    (tmp_path / "b.csv").write_text(LINES.replace(",u1", ",w1"))
    assert cli.main(["ingest", str(tmp_path / "b.csv"), "-o", str(store)]) == 3
    assert "it belongs to the user" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["x.json", "x.jsonl.gz", "x.csv", "x.parquet"])
def test_a_fifo_is_refused_and_in_a_directory_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    os.mkfifo(folder / name)
    assert cli.main(["ingest", str(folder / name), "-o", str(tmp_path / "s")]) == 2
    assert "it is no regular file" in capsys.readouterr().err
    (folder / "a.csv").write_text(LINES)
    assert cli.main(["ingest", str(folder), "-o", str(tmp_path / "s"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 20


def test_metrics_and_manifests_are_regular_files_too(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "metrics.toml")
    assert cli.main(["experiment", str(store), "--metrics", str(tmp_path / "metrics.toml")]) == 2
    (store / "store.json").unlink()
    os.mkfifo(store / "store.json")
    assert cli.main(["compare", str(store)]) == 2
    assert capsys.readouterr().err.count("it is no regular file") == 2
