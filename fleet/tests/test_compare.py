"""compare: recovers the truth, covers it as often as it says, and prints one object."""

import json
from pathlib import Path

import numpy as np
import pytest

from slowpath_fleet import bins, cli, clustered, distributions
from slowpath_fleet.cells import AGGREGATES, COARSE_OFFSET
from slowpath_fleet.compare import compare
from slowpath_fleet.distributions import Distribution
from slowpath_fleet.engine import Engine, RowEngine
from slowpath_fleet.generator import field_data, write
from slowpath_fleet.histogram import Histogram
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Store

QUANTILES = [("50", 0.5), ("95", 0.95)]


def distribution(values: np.ndarray, groups: np.ndarray) -> Distribution:
    """From values and the group of each one's user."""
    scaled = np.log(values) / bins.LN_GAMMA
    fine = np.ceil(scaled).astype(np.int64)
    places = np.clip(np.floor((scaled - (fine - 1)) * 256), 0, 255).astype(np.int64)
    ones = np.ones(len(values), np.int64)
    grouped = clustered.grouped_of(groups, (fine + COARSE_OFFSET) // bins.COARSE, ones, 64)
    return Distribution(Histogram.of(fine, ones, places), grouped, 0)


def sample(random: np.random.Generator, users: int) -> Distribution:
    """Users with a speed of their own and very different numbers of launches."""
    launches = 1 + random.poisson(random.gamma(0.8, 10, users))
    owner = np.repeat(np.arange(users), launches)
    values = np.exp(6 + random.normal(0, 0.4, users)[owner] + random.normal(0, 0.4, len(owner)))
    return distribution(values, (random.integers(0, 64, users))[owner])


def test_the_populations_of_the_story_are_close_at_the_median_and_far_apart_at_p95(story: Store) -> None:
    result = compare(story, Engine(story), "population", None, QUANTILES, "rival").result
    found = {one.quantile: one.relative for one in result.differences}
    assert abs(found["50"].value or 1) < 0.08 and (found["95"].low or 0) > 0.12
    assert {row.value: row.users for row in result.rows}.keys() == {"ours", "rival"}
    assert sum(row.n for row in result.rows) == story.manifest.batches[0].launches


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_intervals_of_equal_arms_cover_zero_as_often_as_they_say_and_naive_ones_do_not(share: float) -> None:
    random = np.random.default_rng(7)
    tries, covered, naive = 400, 0, 0
    for _ in range(tries):
        a, b = sample(random, 600), sample(random, 600)
        one = clustered.difference(*(clustered.quantile(x.histogram, x.grouped, share) for x in (a, b)))
        covered += one.low <= 0 <= one.high
        of_a, of_b = (clustered.naive_quantile(x.histogram, share) for x in (a, b))
        plain = clustered.mover(of_a, of_b, 0.0)
        naive += plain.low <= 0 <= plain.high
    # The bounds are 93-97 %, widened by some two standard errors of 400 tries.
    assert 0.925 <= covered / tries <= 0.98
    assert naive / tries < 0.90


def test_users_on_both_sides_narrow_the_interval_of_the_difference() -> None:
    random = np.random.default_rng(8)
    users = 800
    owner = np.repeat(np.arange(users), 20)
    speed, group = random.normal(0, 0.6, users)[owner], random.integers(0, 64, users)[owner]
    a, b = (distribution(np.exp(6 + speed + random.normal(0, 0.2, len(owner))), group) for _ in range(2))
    of_a, of_b = (clustered.quantile(x.histogram, x.grouped, 0.5) for x in (a, b))
    paired, apart = clustered.difference(of_a, of_b), clustered.mover(of_a.estimate, of_b.estimate, 0.0)
    assert paired.high - paired.low < 0.5 * (apart.high - apart.low)


def test_without_users_there_is_a_value_and_a_reason_but_no_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "".join(f"2026-03-01,M{n % 2},m,{n + 1}\n" for n in range(100))
    (tmp_path / "a.csv").write_text("time,device,metric,value\n" + lines)
    assert cli.main(["ingest", str(tmp_path / "a.csv"), "-o", str(tmp_path / "s")]) == 0
    capsys.readouterr()
    assert cli.main(["compare", str(tmp_path / "s"), "--by", "device", "--quantiles", "50", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (
        printed["rows"][0]["quantiles"]["50"]["low"] is None and "have no user" in printed["unavailable"][0]["reason"]
    )


@pytest.mark.parametrize("words", [["--by", "colour"], ["--metric", "x"], ["--quantiles", "0"], ["--baseline", "x"]])
def test_what_the_store_cannot_answer_is_wrong_usage(
    story: Store, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["compare", str(story.directory), *words]) == 2
    captured = capsys.readouterr()
    assert not captured.out and "slowpath-fleet: " in captured.err


def test_the_terminal_shows_the_picture(story: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", str(story.directory), "--quantiles", "50,95"]) == 0
    assert "50─" in capsys.readouterr().out


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two batches with users in common, one of them without a column."""
    folder = tmp_path_factory.mktemp("batches")
    table = field_data(3_000, 5)
    write(table.slice(0, 20_000), folder / "a.parquet")
    write(table.slice(10_000).drop_columns(["navigation"]), folder / "b.parquet")
    store = Store.create(folder / "s")
    ingest(store, [folder / "a.parquet", folder / "b.parquet"], IngestOptions(), lambda line: None)
    return store


class CountingRows(RowEngine):
    """DuckDB without the cells of the store."""


@pytest.mark.parametrize("dimension", ["device", "navigation"])
def test_what_the_store_has_counted_equals_what_its_rows_say(batches: Store, dimension: str) -> None:
    stored, counted = Engine(batches), CountingRows(batches)
    for kind in ("cells", "groups"):
        keys = [(name, "ascending") for name in AGGREGATES[kind].keys]
        one, other = (engine.summed(kind, dimension, "time_to_ready") for engine in (stored, counted))
        assert one.select(other.column_names).sort_by(keys).to_pydict() == other.sort_by(keys).to_pydict()
    for rate in (1, 4, 8, 16, 64):
        found = [engine.users(dimension, "time_to_ready", rate).sort_by("value") for engine in (stored, counted)]
        assert found[0].to_pydict() == found[1].to_pydict(), rate
    assert "(missing)" in found[0]["value"].to_pylist() or dimension == "device"


def test_users_of_very_many_launches_are_scaled_up_from_a_sample_and_it_says_so(
    story: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def users() -> tuple[dict[str, int | None], list[str]]:
        result = compare(story, Engine(story), "population", None, QUANTILES, None).result
        return {row.value: row.users for row in result.rows}, result.notes

    exact, _ = users()
    monkeypatch.setattr(distributions, "EXACT_USERS", 10_000)
    scaled, notes = users()
    assert any("1 of 16 buckets" in note for note in notes)
    for value, count in exact.items():
        # One in 16 of some 6,000 users: a standard error of 5 %.
        assert scaled[value] != count and abs((scaled[value] or 0) / (count or 1) - 1) < 0.15
