"""compare: recovers the truth, covers it as often as it says, and prints one object."""

import json
from pathlib import Path

import numpy as np
import pytest

from slowpath_fleet import bins, cli, clustered
from slowpath_fleet.cells import COARSE_OFFSET
from slowpath_fleet.compare import compare
from slowpath_fleet.distributions import Distribution
from slowpath_fleet.engine import Engine
from slowpath_fleet.histogram import Histogram
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
