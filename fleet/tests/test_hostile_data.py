"""Data that somebody made to hurt: bounded, refused with a reason, and harmless on a page and in a terminal."""

import gzip
import json
import re
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slowpath_fleet import Fleet, cli
from slowpath_fleet.sources import parquet
from slowpath_fleet.sources.raw_table import gathered

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=cmd|' /C calc'!A0",
    "\x1b[2J\x1b]0;x\x07",
    "a\u202eb",
    "x\x9b31m\x7f",
    "a\nsample ratio: ok\rb",
    "l\u2028r\U000e0041",
    "';DROP TABLE x;--",
]

METRICS = ["time_to_ready", EVIL[3], EVIL[6]]


class Tags(HTMLParser):
    """Names and attributes of the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every name and value is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    column = '<b>"x"</b>'
    rows = [
        {
            "time": "2026-03-01",
            "user": f"{evil}{n}",
            "metric": metric,
            "value": 100 + n % 37 + 30 * (evil == EVIL[0]),
            "population": evil,
            "experiment": EVIL[3],
            "arm": EVIL[3 + n % 2],
            column: evil,
        }
        for metric in METRICS
        for evil in EVIL
        for n in range(60)
    ]
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert cli.main(["ingest", str(folder / "a.jsonl"), "-o", str(folder / "s")]) == 0
    return folder / "s"


def test_a_page_holds_no_element_and_no_attribute_from_data(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        cli.main(
            [
                "compare",
                str(store),
                "--metric",
                "time_to_ready",
                "--by",
                '<b>"x"</b>',
                "--html",
                str(tmp_path / "a.html"),
            ]
        )
        == 0
    )
    text = (tmp_path / "a.html").read_text()
    tags = Tags()
    tags.feed(text)
    assert tags.names.isdisjoint({"script", "img", "b", "iframe", "object", "a"})
    assert not {name for name in tags.attributes if name.startswith("on") or name in ("href", "src", "style")}
    assert "default-src &#x27;none&#x27;" in text and "unsafe" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


QUERIES = (
    ["compare", "--quantiles", "50"],
    ["compare", "--quantiles", "50", "--by", "experiment"],
    ["slices", "--by", "population", "--baseline", EVIL[0]],
    ["experiment"],
    ["experiment", "--control", EVIL[4]],
    ["compare", "--by", EVIL[6]],
    ["experiment", "--control", EVIL[7]],
    ["watch"],
    ["watch", "--by", EVIL[7]],
)
# What is no character to read: controls, formats, separators of lines, and what Unicode has not assigned.
UNREADABLE = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)


@pytest.fixture(scope="module")
def without_users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile values of launches that have no user."""
    folder = tmp_path_factory.mktemp("without")
    rows = [
        {"time": "2026-03-01", "metric": EVIL[6], "value": 100 + n, "population": e} for e in EVIL for n in range(9)
    ]
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert cli.main(["ingest", str(folder / "a.jsonl"), "-o", str(folder / "s")]) == 0
    return folder / "s"


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: " ".join(query[:2]).encode("unicode_escape").decode())
def test_neither_a_terminal_nor_json_nor_a_page_gets_a_control_character_from_data(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], query: list[str], metric: str
) -> None:
    capsys.readouterr()
    words = [query[0], str(store), "--metric", metric, *query[1:]]
    plain = cli.main([*words, "--html", str(tmp_path / "a.html")])
    shown = capsys.readouterr()
    assert cli.main([*words, "--json"]) == plain
    printed = capsys.readouterr()
    page = (tmp_path / "a.html").read_text() if plain in (0, 1) else ""
    for text in (shown.out, shown.err, printed.out, printed.err, page):
        assert not UNREADABLE.search(text)
    # No line begins as a line of data says, and JSON holds what the data hold.
    assert not re.search(r"^sample ratio: ok", shown.out, re.MULTILINE)
    document = json.loads(printed.out)
    if plain in (0, 1):
        found = document["metrics"][0]["metric"] if query[0] == "experiment" else document["metric"]
        assert found == metric
    else:
        assert document["error"]["kind"] == "usage"


def test_what_could_not_be_done_is_escaped_too(without_users: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert cli.main(["compare", str(without_users), "--quantiles", "50"]) == 0
    out = capsys.readouterr().out
    assert not UNREADABLE.search(out) and "no intervals of x\\x9b31m\\x7f: 9 of 9 launches have no user" in out
    assert not re.search(r"^sample ratio: ok", out, re.MULTILINE)


def test_a_notebook_gets_the_same_escaped_fragment(store: Path) -> None:
    view = Fleet(store).compare(by="population", quantiles="50")
    assert "<script" not in view._repr_html_() and "by population" in repr(view) and view.page().startswith("<!doctype")


def test_a_column_with_a_value_a_row_is_kept_in_rows_and_refused_for_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    n = 20_000
    table = pa.table(
        {
            "time": [1772323200] * n,
            "user": range(n),
            "url": [f"u{i}" for i in range(n)],
            "metric": ["m"] * n,
            "value": [1.0] * n,
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    assert cli.main(["ingest", str(tmp_path / "a.parquet"), "-o", str(tmp_path / "s")]) == 0
    assert cli.main(["compare", str(tmp_path / "s"), "--by", "url"]) == 2
    assert "more than 1000" in capsys.readouterr().err


def test_a_parquet_file_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1")
    assert cli.main(["ingest", str(tmp_path / "a.parquet"), "-o", str(tmp_path / "s")]) == 2
    assert "cannot ingest" in capsys.readouterr().err


def write_packed(path: Path, *parts: bytes) -> None:
    """Packed as the name's ending says."""
    with pa.output_stream(path, compression={".gz": "gzip", ".zst": "zstd"}[path.suffix]) as file:
        for part in parts:
            file.write(part)


def test_bombs_are_read_in_bounded_memory(tmp_path: Path) -> None:
    # One line of 100 MB in 100 KB of gzip or zstd, and two million equal rows in some KB of Parquet.
    long = 100 * (b"1" * 1_000_000,)
    write_packed(tmp_path / "line.csv.gz", b"time,user,metric,value\n", *long)
    write_packed(tmp_path / "line.csv.zst", b"time,user,metric,value\n", *long)
    write_packed(tmp_path / "line.jsonl.gz", b'{"time": "2026-03-01", "metric": "m", "value": "', *long, b'"}')
    # Values that take thirty times their text in memory.
    write_packed(tmp_path / "values.json.gz", b'{"histograms": [', *(100 * (b"{}," * 300_000,)), b"{}]}")
    n = 1_000_000
    one = pa.table(
        {
            name: pa.array([value] * n)
            for name, value in (("time", 1772323200), ("user", 1), ("metric", "m"), ("value", 1.0))
        }
    )
    with pq.ParquetWriter(tmp_path / "rows.parquet", one.schema, compression="zstd") as writer:
        for _ in range(2):
            writer.write_table(one)
    assert (tmp_path / "rows.parquet").stat().st_size < 1_000_000
    code = (
        "import re, sys; from slowpath_fleet import cli; "
        "codes = [cli.main(['ingest', name, '-o', sys.argv[1], '--quiet']) for name in sys.argv[2:]]; "
        # Of this process image alone: ru_maxrss survives exec, and with it the size of pytest.
        "print(codes, re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    names = ("s", "line.csv.gz", "line.csv.zst", "line.jsonl.gz", "values.json.gz", "rows.parquet")
    files = [str(tmp_path / name) for name in names]
    words = [sys.executable, "-c", code, *files]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={"SLOWPATH_FLEET_MEMORY": "600MB"})
    codes, peak = re.findall(r"(\[.*\]) (\d+)$", done.stdout.strip())[0]
    assert codes == "[2, 2, 2, 2, 0]" and int(peak) < 1_300_000, done.stdout + done.stderr


HISTOGRAM = '{"name": "m", "time": "2026-03-01", "buckets": [{"low": 1, "high": 2, "count": %s}]}'
WIDE = "9" * 400


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.json", HISTOGRAM % "1e999", 0),
        ("a.json", HISTOGRAM % WIDE, 0),
        ("a.json", HISTOGRAM % "1e300", 0),
        ("a.json", HISTOGRAM.replace('"m"', f'"m", "chip": {WIDE}') % "1", 0),
        ("a.json", HISTOGRAM.replace('"m"', '"m", "deep": ' + "[" * 30000) % "1", 2),
        ("a.json", "[" * 30000, 2),
        ("a.json", '{"histograms": ' + "[" * 30000, 2),
        ("a.json", '{"schema": "slowpath-launch/1", "arms": ' + "[" * 30000, 2),
        ("a.jsonl", "[" * 30000, 2),
        ("a.jsonl", HISTOGRAM % "1" + "\n" + "[" * 30000, 0),
        ("a.jsonl.gz", gzip.compress(HISTOGRAM.encode() * 9)[:-20], 2),
        ("a.jsonl.gz", gzip.compress(b'{"x": 1}\n' * 100000)[:150], 2),
        ("a.jsonl.gz", gzip.compress(b'{"x": 1}\n')[:12] + b"\xff" * 40, 2),
        ("a.csv.gz", gzip.compress(b"time,user,metric,value\n" * 9999)[:60], 2),
    ],
    ids=[
        *(
            "count-infinite",
            "count-wide",
            "count-large",
            "dimension-wide",
            "value-deep",
            "array-deep",
            "histograms-deep",
        ),
        *("launch-deep", "lines-deep", "line-deep", "gzip-cut", "gzip-short", "gzip-damaged", "csv-cut"),
    ],
)
def test_data_that_no_reader_expects_are_set_aside_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str | bytes, code: int
) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert cli.main(["ingest", str(tmp_path / name), "-o", str(tmp_path / "s"), "--json"]) == code
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    document = json.loads(captured.out)
    assert code == 0 or "cannot ingest" in document["error"]["message"]


def lines_of(documents: list[dict[str, object]]) -> str:
    return "\n".join(map(json.dumps, documents))


BUCKETS = [{"low": 1, "high": 2, "count": 1}] * 2000
SMALL: dict[str, object] = {"name": "m", "time": "2026-03-01", "buckets": BUCKETS[:1]}
POINTS = [{"asDouble": 1.0, "timeUnixNano": "1772323200000000000"}] * 2000
LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    ("name", "documents", "said"),
    [
        ("a.jsonl", [SMALL, {"name": LONG, "buckets": BUCKETS}], "take more than 512 MiB"),
        ("a.jsonl", [SMALL, SMALL | {f"k{n}": n for n in range(6000)}], "more than 5,120 col"),
        ("a.jsonl", [SMALL | {f"k{n}": n} for n in range(6000)], "more than 5,120 col"),
        (
            "a.jsonl",
            [{"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": LONG, "gauge": {"dataPoints": POINTS}}]}]}]}],
            "take more than 512 MiB",
        ),
        (
            "a.json",
            [
                {
                    "schema": "slowpath-launch/1",
                    "units": {},
                    "arms": [{"name": "a", "command": [LONG], "launches": [{"measures": {"m": 1}}] * 2000}],
                }
            ],
            "take more than 512 MiB",
        ),
    ],
    ids=["long-name", "keys-of-one", "keys-of-many", "long-metric", "long-command"],
)
def test_a_small_file_that_says_the_same_of_every_row_does_not_become_a_large_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, documents: list[dict[str, object]], said: str
) -> None:
    (tmp_path / name).write_text(lines_of(documents))
    assert cli.main(["ingest", str(tmp_path / name), "-o", str(tmp_path / "s")]) == 2
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err


def test_columns_of_records_line_up_whichever_record_has_them(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"a": 1}, {"b": "x"}, {}, {"a": 2, "c": 3.5}, {"b": "y"}]
    assert gathered(tmp_path, rows) == {
        "a": [1, None, None, 2, None],
        "b": [None, "x", None, None, "y"],
        "c": [None, None, None, 3.5, None],
    }


def test_a_manifest_without_end_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r").mkdir()
    with (tmp_path / "r" / "manifest.json").open("wb") as file:
        file.truncate(257 << 20)
    for words in (["ingest", str(tmp_path / "r"), "-o", str(tmp_path / "s")], ["query", str(tmp_path / "r")]):
        assert cli.main(words) == 2
        assert "larger than 256 MiB" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["MOST_ROWS", "LARGEST_ROW_GROUP"])
def test_a_parquet_file_that_declares_more_than_can_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], limit: str
) -> None:
    table = pa.table({"time": [1772323200] * 9, "metric": ["m"] * 9, "value": [1.0] * 9})
    pq.write_table(table, tmp_path / "a.parquet")
    monkeypatch.setattr(parquet, limit, 8)
    assert cli.main(["ingest", str(tmp_path / "a.parquet"), "-o", str(tmp_path / "s")]) == 2
    assert "split it" in (err := capsys.readouterr().err) or "smaller row groups" in err


@pytest.mark.parametrize("name", ["a.zip", "a.csv", "a.jsonl", "a.parquet"])
def test_a_zip_archive_is_no_field_data_whatever_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", b"0" * 10_000_000)
    code = cli.main(["ingest", str(tmp_path / name), "-o", str(tmp_path / "s"), "--json"])
    captured = capsys.readouterr()
    assert code == 2 and "cannot ingest" in captured.out and "Traceback" not in captured.err


def test_a_damaged_store_is_what_this_machine_cannot_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(f"2026-03-01,u{n},M1,m,{n + 1}\n" for n in range(100))
    (tmp_path / "a.csv").write_text("time,user,device,metric,value\n" + lines)
    assert cli.main(["ingest", str(tmp_path / "a.csv"), "-o", str(tmp_path / "s")]) == 0
    for file in (tmp_path / "s" / "cells").glob("*.parquet"):
        file.write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1")
    capsys.readouterr()
    assert cli.main(["compare", str(tmp_path / "s"), "--by", "device"]) == 3
    assert "ingest the data anew" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, ""),
        (duckdb.InterruptException("x"), 130, ""),
        (duckdb.OutOfMemoryException("x"), 3, "raise SLOWPATH_FLEET_MEMORY"),
        (ZeroDivisionError("x"), 3, "report it"),
    ],
)
def test_neither_ctrl_c_nor_a_defect_looks_like_a_failed_verdict(
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    code: int,
    said: str,
) -> None:
    def raises(*_: object) -> None:
        raise raised

    monkeypatch.setattr("slowpath_fleet.commands.compare.compare", raises)
    assert cli.main(["compare", str(store)]) == code
    captured = capsys.readouterr()
    assert not captured.out and said in captured.err and "Traceback" not in captured.err
