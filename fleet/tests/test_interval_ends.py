"""Quantiles of few users: an interval has both ends, or there is none, and it says why."""

from pathlib import Path

import numpy as np
import pytest
from scipy import special

from slowpath_fleet import Fleet, cli, clustered
from slowpath_fleet.clustered import Estimate
from slowpath_fleet.experiment.quantile_effect import arm_quantile, quantile_effect
from slowpath_fleet.histogram import Histogram
from slowpath_fleet.printed import Unavailable
from test_compare import distribution

LAUNCHES = 6


def alike(random: np.random.Generator, users: int) -> np.ndarray:
    """Values of users whose launches are all alike."""
    return np.repeat(np.exp(6 + random.normal(0, 0.6, users)), LAUNCHES)


# The data give no upper end for p99 of 100 users and p95 of 40, no lower one for p2.5 of 60, and both for the others.
@pytest.mark.parametrize(
    ("users", "share", "given"),
    [(100, 0.99, False), (40, 0.95, False), (60, 0.025, False), (40, 0.5, True), (200, 0.95, True), (800, 0.99, True)],
)
def test_an_interval_of_alike_launches_covers_as_often_as_it_says_or_is_none(
    users: int, share: float, given: bool
) -> None:
    random = np.random.default_rng([31, users])
    truth = float(np.exp(6 + 0.6 * special.ndtri(share)))
    tries, wrong, none = 300, 0, 0
    for _ in range(tries):
        one = distribution(alike(random, users), np.repeat(random.integers(0, 64, users), LAUNCHES))
        found = clustered.quantile(one.histogram, one.grouped, share)
        none += found.missing is not None
        assert found.estimate.has_interval == (found.missing is None)
        wrong += found.estimate.has_interval and not found.estimate.low <= truth <= found.estimate.high
    assert wrong / tries <= 0.075
    assert none / tries < 0.1 if given else none / tries > 0.9


@pytest.mark.parametrize(("users", "share", "given"), [(100, 0.99, False), (40, 0.95, False), (300, 0.95, True)])
def test_equal_arms_of_few_users_get_no_small_p(users: int, share: float, given: bool) -> None:
    random = np.random.default_rng([32, users])
    owner, ones = np.repeat(np.arange(users), LAUNCHES), np.ones(users * LAUNCHES, np.int64)
    tries, small, none = 200, 0, 0
    for _ in range(tries):
        arms = []
        for _arm in range(2):
            bins = np.ceil(np.log(alike(random, users)) / np.log(1.02)).astype(np.int64)
            arms.append(arm_quantile(owner, bins, ones, Histogram.of(bins, ones, 128 * ones), share))
        effect = quantile_effect(arms[0], arms[1], "ms", -1)
        small += effect.p < 0.05
        none += effect.reason is not None
        assert np.isnan(effect.p) == (effect.reason is not None) == (effect.remedy is not None)
    assert small / tries <= 0.075
    assert none / tries < 0.1 if given else none / tries > 0.9


def test_a_share_whose_interval_holds_all_launches_has_no_ends() -> None:
    bins, ones = np.arange(1, 101), np.ones(100, np.int64)
    histogram = Histogram.of(bins, ones, 128 * ones)
    assert clustered.at_share(histogram, 0.5, 0.3).has_interval
    for share, reach, end in ((0.9, 0.1, "an upper end"), (0.9, 0.2, "an upper end"), (0.1, 0.1, "a lower end")):
        one = clustered.at_share(histogram, share, reach)
        assert one.value == histogram.quantile(share) and not one.has_interval
        assert (clustered.without_end(share, reach) or "").endswith(end)
    assert not clustered.mover(one, Estimate(1, 0.5, 2), 0.0).has_interval


def test_a_missing_interval_has_its_reason_and_its_remedy(tmp_path: Path) -> None:
    random = np.random.default_rng(33)
    lines = [
        f"2026-03-01,u{number},M{number % 2},{'ab'[number % 2]},m,{value:.3f}"
        for number, value in enumerate(np.exp(6 + random.normal(0, 0.6, 200)))
        for _ in range(LAUNCHES)
    ]
    (tmp_path / "a.csv").write_text("\n".join(["time,user,device,arm,metric,value", *lines]))
    (tmp_path / "m.toml").write_text('[[metric]]\nname = "m"\nstatistics = ["p50", "p99"]\n')
    assert cli.main(["ingest", str(tmp_path / "a.csv"), "-o", str(tmp_path / "s")]) == 0
    fleet = Fleet(tmp_path / "s")
    why = "too few users have launches above for an upper end"

    compared = fleet.compare(by="device", quantiles="50,99")
    assert compared.result.unavailable == [Unavailable("intervals of p99 of M0, M1", why, clustered.REMEDY)]
    assert f"no intervals of p99 of M0, M1: {why}; collect" in repr(compared)
    (median, tail) = (one.relative for one in compared.result.differences)
    assert median.low is not None and (tail.low, tail.high) == (None, None)

    gap = fleet.slices(by="device", baseline="M0", quantile="99", max_depth=1).result
    sides = [f"p99 of {side}: {why}" for side in ("M0", "the others")]
    assert gap.gap.low is None and [one.reason for one in gap.unavailable] == sides

    judged = fleet.experiment(metrics=str(tmp_path / "m.toml"))
    assert [one.p is None for one in judged.result.metrics] == [False, True]
    few = "too few units beyond this quantile"
    assert judged.result.unavailable == [Unavailable("estimate of m p99 for b", few, clustered.REMEDY)]
    assert f"no estimate of m p99 for b: {few}; collect" in repr(judged)
