"""Effects of slowpath-fleet beside gbstats and tea-tasting; run by bench/accept/fleet-agreement.

One generated experiment. The others get sums per user that pandas makes from the launches, not from the store. Prints a
Markdown table; exit code 1 where an effect differs by more than 1e-9 (means) or 1 % (quantiles, which come from bins
here), or the width of an interval by more than 1 % (means) or 10 % (quantiles).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tea_tasting as tt
from gbstats.frequentist.tests import FrequentistConfig, TwoSidedTTest
from gbstats.models.statistics import (
    ProportionStatistic,
    QuantileClusteredStatistic,
    RatioStatistic,
    SampleMeanStatistic,
)
from slowpath_fleet import Fleet, generator
from slowpath_fleet.ingest import IngestOptions, ingest
from slowpath_fleet.store import Store

ARMS = ("control", "fix")
METRICS = """
[[metric]]
name = "time_to_ready"
statistics = ["mean", "p50", "p95", "count_per_user"]
[retention]
days = [1]
"""


@dataclass
class Effect:
    """Of one tool."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Of its interval."""
        return self.high - self.low


def of_gbstats(one: Any, other: Any) -> Effect:
    """Absolute difference by a two-sided t test."""
    found = TwoSidedTTest(one, other, FrequentistConfig(difference_type="absolute")).compute_result()
    return Effect(found.expected, *found.ci)


def sums(values: pd.Series) -> SampleMeanStatistic:
    """Of a number a user."""
    return SampleMeanStatistic(n=len(values), sum=values.sum(), sum_squares=(values**2).sum())


def ratio(users: pd.DataFrame) -> RatioStatistic:
    """Mean of all launches."""
    product = (users.total * users.n).sum()
    return RatioStatistic(
        n=len(users), m_statistic=sums(users.total), d_statistic=sums(users.n), m_d_sum_of_products=product
    )


def quantile(launches: pd.DataFrame, share: float) -> QuantileClusteredStatistic:
    """A quantile with users as clusters."""
    values = np.sort(launches.value.to_numpy())
    n = len(values)
    reach = 1.959964 * np.sqrt(share * (1 - share) / n)
    at, low, high = (np.quantile(values, one) for one in (share, share - reach, share + reach))
    users = launches.assign(below=launches.value <= at).groupby("user").agg(s=("below", "sum"), n=("below", "size"))
    return QuantileClusteredStatistic(
        n=n,
        n_star=n,
        nu=share,
        quantile_hat=at,
        quantile_lower=low,
        quantile_upper=high,
        main_sum=users.s.sum(),
        main_sum_squares=(users.s**2).sum(),
        denominator_sum=users.n.sum(),
        denominator_sum_squares=(users.n**2).sum(),
        main_denominator_sum_product=(users.s * users.n).sum(),
        n_clusters=len(users),
    )


def returned(launches: pd.DataFrame, last: Any) -> ProportionStatistic:
    """Users who came back a day after their first."""
    days = launches.assign(day=launches.time.dt.floor("D"))
    first = days.groupby("user").day.min()
    known = first[first <= last - pd.Timedelta(days=1)]
    seen = set(zip(days.user, days.day, strict=True))
    came = sum((user, day + pd.Timedelta(days=1)) in seen for user, day in known.items())
    return ProportionStatistic(n=len(known), sum=came)


def of_tea_tasting(users: pd.DataFrame) -> dict[str, Effect]:
    """From a row a user, by its own classes."""
    metrics = {"mean": tt.RatioOfMeans("total", "n"), "count_per_user": tt.Mean("n")}
    found = tt.Experiment(metrics, variant="arm").analyze(users.reset_index(drop=True), control="control")
    return {
        name: Effect(one["effect_size"], one["effect_size_ci_lower"], one["effect_size_ci_upper"])
        for name, one in ((name, found[name]._asdict()) for name in metrics)
    }


def main() -> int:
    """Compares."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--users", type=int, default=20_000)
    table = generator.field_data(words.parse_args().users, 1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        generator.write(table, place / "a.parquet")
        (place / "metrics.toml").write_text(METRICS)
        ingest(Store.create(place / "s"), [place / "a.parquet"], IngestOptions(), lambda line: None)
        result = Fleet(place / "s").experiment(metrics=str(place / "metrics.toml")).result
    ours = {
        one.statistic: Effect(one.difference.value, one.difference.low, one.difference.high) for one in result.metrics
    }
    launches = table.to_pandas()
    launches = launches[launches.arm.notna() & (launches.robot != "true")]
    sides = [launches[launches.arm == arm] for arm in ARMS]
    users = [
        side.groupby("user").agg(total=("value", "sum"), n=("value", "size"), arm=("arm", "first")) for side in sides
    ]
    last = launches.time.max().floor("D")
    others = {
        "gbstats": {
            "mean": of_gbstats(*map(ratio, users)),
            "count_per_user": of_gbstats(*(sums(one.n) for one in users)),
            "p50": of_gbstats(*(quantile(side, 0.5) for side in sides)),
            "p95": of_gbstats(*(quantile(side, 0.95) for side in sides)),
            "day 1": of_gbstats(*(returned(side, last) for side in sides)),
        },
        "tea-tasting": of_tea_tasting(pd.concat(users).assign(n=lambda one: one.n.astype(float))),
    }
    agree = True
    print("| statistic | slowpath-fleet | other | its effect | effect off by | width of the interval off by |")
    print("|---|---|---|---|---|---|")
    for tool, effects in others.items():
        for name, other in effects.items():
            one = ours[name]
            # Of quantiles the unit is the quantile itself: a difference of two is as exact as they are.
            scale = np.quantile(sides[0].value, float(name[1:]) / 100) if name.startswith("p") else abs(other.value)
            off, wider = (one.value - other.value) / scale, one.width / other.width - 1
            limits = (0.01, 0.1) if name.startswith("p") else (1e-9, 0.01)
            agree &= abs(off) <= limits[0] and abs(wider) <= limits[1]
            shown = [f"{each.value:.4f} ({each.low:.4f}..{each.high:.4f})" for each in (one, other)]
            print(f"| {name} | {shown[0]} | {tool} | {shown[1]} | {off:+.2g} | {wider:+.2%} |")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
