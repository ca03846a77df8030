"""experiment: recovers the effect of the repair, and checks that it may be believed."""

import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from conftest import USERS, made
from slowpath_fleet import cli, generator
from slowpath_fleet.clustered import Estimate
from slowpath_fleet.experiment.effect import Effect
from slowpath_fleet.experiment.many_tests import always_valid, holm
from slowpath_fleet.experiment.means import ratio
from slowpath_fleet.experiment.quantile_effect import arm_quantile, quantile_effect
from slowpath_fleet.experiment.retention import returned
from slowpath_fleet.experiment.sample_ratio import sample_ratio
from slowpath_fleet.histogram import Floats, Histogram
from slowpath_fleet.store import Store

METRICS = """
[[metric]]
name = "time_to_ready"
statistics = ["mean", "p50", "p95", "count_per_user"]

[retention]
days = [1, 2]
"""


def run(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str, toml: str = METRICS
) -> tuple[int, dict[str, object]]:
    (tmp_path / "metrics.toml").write_text(toml)
    code = cli.main(
        [
            "experiment",
            str(store.directory),
            "--unit",
            "user_id",
            "--metrics",
            str(tmp_path / "metrics.toml"),
            "--json",
            *words,
        ]
    )
    out = capsys.readouterr().out
    return code, json.loads(out) if out else {}


def test_the_repair_of_the_story_shows_at_the_mean_and_at_p95_and_not_at_the_median(
    story: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = run(story, tmp_path, capsys)
    assert code == 0 and found["sample_ratio"]["ok"] and found["robots"] > 0  # type: ignore[index,operator]
    by_name = {(one["metric"], one["statistic"]): one for one in found["metrics"]}  # type: ignore[attr-defined]
    assert set(by_name) == {("time_to_ready", s) for s in ("mean", "p50", "p95", "count_per_user")} | {
        ("retention", "day 1"),
        ("retention", "day 2"),
    }
    p95, mean = by_name["time_to_ready", "p95"], by_name["time_to_ready", "mean"]
    assert p95["relative"]["high"] < -0.1 and p95["better"] and p95["p_adjusted"] < 1e-3
    assert mean["better"] and mean["relative"]["value"] > p95["relative"]["value"]
    assert by_name["time_to_ready", "count_per_user"]["better"] is None
    assert set(p95["arms"]) == {"control", "fix"}


def test_a_pre_period_narrows_the_interval_of_the_mean(
    story: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The same launches of the same users, with and without those of the days before.
    table = generator.field_data(USERS, 1)
    late = pc.greater_equal(table["time"], pa.scalar(datetime(2026, 3, 8), table["time"].type))
    generator.write(table.filter(late), tmp_path / "late.parquet")
    toml = '[[metric]]\nname = "time_to_ready"\nstatistics = ["mean", "count_per_user"]\n'
    _, plain = run(made(tmp_path / "late", tmp_path / "late.parquet"), tmp_path, capsys, toml=toml)
    code, found = run(story, tmp_path, capsys, toml=toml + '[cuped]\nbefore = "2026-03-08"\n')
    assert code == 0 and any("CUPED" in note for note in found["notes"])  # type: ignore[attr-defined]
    for with_pre, without in zip(found["metrics"], plain["metrics"], strict=True):  # type: ignore[call-overload]
        for arm, level in without["arms"].items():
            assert with_pre["arms"][arm]["value"] == pytest.approx(level["value"])
        width, of_plain = (one["difference"]["high"] - one["difference"]["low"] for one in (with_pre, without))
        # Launches of a user vary more from week to week than their speed does.
        assert width < (0.95 if with_pre["statistic"] == "mean" else 1) * of_plain


def columns(random: np.random.Generator, users: int) -> dict[str, Floats]:
    before = random.poisson(random.gamma(2, 5, users)).astype(float)
    return {"numer": before + random.poisson(5, users), "numer0": before}


def test_cuped_uses_what_is_known_from_before() -> None:
    random = np.random.default_rng(3)
    sides = [columns(random, 2000) for _ in range(2)]
    plain = ratio(sides[0], sides[1], denominator=False, covariates=False, unit="count", good=1)
    with_pre = ratio(sides[0], sides[1], denominator=False, covariates=True, unit="count", good=1)
    assert with_pre.difference_error < 0.6 * plain.difference_error


def test_units_that_do_not_vary_are_a_reason_and_not_a_crash() -> None:
    before = np.arange(50.0)
    for side in ({"numer": before + 3, "numer0": before}, {"numer": np.where(before < 50, 7.0, 0.0), "numer0": before}):
        effect = ratio(side, side, denominator=False, covariates=True, unit="count", good=1)
        assert effect.reason is not None or effect.difference.value == pytest.approx(0)


def test_ratios_and_quantiles_of_equal_arms_cover_zero_as_often_as_they_say() -> None:
    random = np.random.default_rng(5)
    tries, means, quantiles, naive = 300, 0, 0, 0
    for _ in range(tries):
        sides, found = [], []
        for _arm in range(2):
            launches = 1 + random.poisson(random.gamma(0.8, 8, 250))
            owner = np.repeat(np.arange(250), launches)
            log = 6 + random.normal(0, 0.4, 250)[owner] + random.normal(0, 0.4, len(owner))
            values = np.exp(log)
            sides.append({"numer": np.bincount(owner, values), "denom": launches.astype(float)})
            bins = np.ceil(log / np.log(1.02)).astype(np.int64)
            ones = np.ones(len(owner), np.int64)
            found.append((arm_quantile(owner, bins, ones, Histogram.of(bins, ones, 128 * ones), 0.95), values))
        effect = ratio(sides[0], sides[1], denominator=True, covariates=False, unit="ms", good=-1)
        means += effect.difference.low <= 0 <= effect.difference.high
        at = quantile_effect(found[0][0], found[1][0], "ms", -1)
        quantiles += at.difference.low <= 0 <= at.difference.high
        a, b = found[0][1], found[1][1]
        error = np.sqrt(a.var() / len(a) + b.var() / len(b))
        naive += abs(a.mean() - b.mean()) <= 1.96 * error
    assert 0.92 <= means / tries <= 0.985 and 0.92 <= quantiles / tries <= 0.985
    assert naive / tries < 0.9


def test_arms_that_lost_users_are_a_failed_verdict() -> None:
    assert sample_ratio({"a": 10_000, "b": 10_050}, {}).ok
    assert not sample_ratio({"a": 10_000, "b": 10_900}, {}).ok
    assert sample_ratio({"a": 10_000, "b": 5_020}, {"a": 2, "b": 1}).ok


def test_a_failed_sample_ratio_is_exit_code_1(story: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(story, tmp_path, capsys, toml=METRICS + "[arms]\ncontrol = 1\nfix = 3\n")
    assert code == 1 and "do not trust" in " ".join(found["notes"])  # type: ignore[arg-type]


def test_without_named_shares_an_uneven_split_is_said_and_fails_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"2026-03-01,{user},{'ab'[user % 4 == 0]},m,{100 + user % 7}" for user in range(400)]
    (tmp_path / "a.csv").write_text("\n".join(["time,user,arm,metric,value", *rows]))
    assert cli.main(["ingest", str(tmp_path / "a.csv"), "-o", str(tmp_path / "s")]) == 0
    capsys.readouterr()
    assert cli.main(["experiment", str(tmp_path / "s")]) == 0
    out = capsys.readouterr().out
    assert "MISMATCH" in out and "equal shares assumed; name them in [arms]" in out and "do not have equal" in out
    toml = '[[metric]]\nname = "m"\n[arms]\na = 3\nb = 1\n'
    code, found = run(Store.open(tmp_path / "s"), tmp_path, capsys, toml=toml)
    ratio = found["sample_ratio"]
    assert code == 0 and ratio["ok"] and not ratio["assumed"]  # type: ignore[index]
    assert ratio["expected"] == {"a": 0.75, "b": 0.25}  # type: ignore[index]


def test_intervals_that_do_not_hold_at_every_look_are_not_shown_beside_those_that_do(
    story: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = run(story, tmp_path, capsys, "--always-valid")
    for one in found["metrics"]:  # type: ignore[attr-defined]
        assert one["difference"]["low"] is not None and one["relative"]["low"] is not None
        assert all(arm["value"] is not None and arm["low"] is None for arm in one["arms"].values())
    assert any("arms have none" in note for note in found["notes"])  # type: ignore[attr-defined]


def test_retention_asks_only_those_who_can_have_come_back() -> None:
    unit, day = np.array([0, 0, 1, 1, 2]), np.array([1, 2, 1, 3, 4])
    came, known = returned(unit, day, 3, 1)
    assert came.tolist() == [1, 0, 0] and known.tolist() == [1, 1, 0]


def test_holm_multiplies_by_the_tests_that_are_left_and_leaves_out_what_has_no_p() -> None:
    assert holm([0.01, float("nan"), 0.04, 0.03])[0] == pytest.approx(0.03)
    assert holm([0.01, 0.04, 0.03])[1:] == [pytest.approx(0.06), pytest.approx(0.06)]


def test_whoever_stops_at_the_first_significant_look_is_right_as_often_as_always_valid_intervals_say() -> None:
    random = np.random.default_rng(6)
    tries, always, once = 200, 0, 0
    looks = np.arange(200, 4001, 200)
    for _ in range(tries):
        sums = np.cumsum(random.normal(0, 1, 4000))[looks - 1]
        effects = []
        for n, total in zip(looks, sums, strict=True):
            mean, error = total / n, 1 / np.sqrt(n)
            zero = Estimate(mean, mean, mean)
            effect = Effect(zero, zero, zero, zero, 0.5, "ms", 1, float(error), float(error))
            effects.append(always_valid(effect, int(n), 2000).p < 0.05)
        always += any(effects)
        once += bool((np.abs(sums / np.sqrt(looks)) > 1.96).any())
    assert always / tries <= 0.05 + 2 * 0.016 and once / tries > 0.12


@pytest.mark.parametrize("cuped", ["", '[cuped]\nbefore = "2026-03-02"\n'])
def test_launches_outside_the_experiment_do_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cuped: str
) -> None:
    # Before: 50 ms. In the experiment: some 100 ms. The same users without an arm, and in another experiment: 10 s.
    rows = ["time,user,experiment,arm,metric,value"]
    for user in range(100):
        arm = "ab"[user % 2]
        rows += [f"2026-03-01,{user},,,m,{50 + user * 3 % 11}", f"2026-03-02,{user},one,{arm},m,{100 + user % 7}"]
        rows += [f"2026-03-03,{user},,,m,10000", f"2026-03-03,{user},two,{arm},m,10000"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    assert cli.main(["ingest", str(tmp_path / "a.csv"), "-o", str(tmp_path / "s")]) == 0
    capsys.readouterr()
    toml = f'[[metric]]\nname = "m"\nstatistics = ["mean", "p50"]\n{cuped}'
    code, found = run(Store.open(tmp_path / "s"), tmp_path, capsys, "--experiment", "one", toml=toml)
    values = [one["arms"][arm]["value"] for one in found["metrics"] for arm in "ab"]  # type: ignore[attr-defined]
    assert code == 0 and len(values) == 4 and all(100 <= value <= 107 for value in values)


@pytest.mark.parametrize(
    "toml",
    [
        "[[metric]]\nname = 3",
        "nonsense",
        '[[metric]]\nname = "x"',
        '[[metric]]\nname = "time_to_ready"\nstatistics = ["p0"]',
    ],
)
def test_metrics_that_make_no_sense_are_wrong_usage(
    story: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], toml: str
) -> None:
    code, found = run(story, tmp_path, capsys, toml=toml)
    assert code == 2 and found["error"]["kind"] == "usage" and found["error"]["hint"]  # type: ignore[index]
