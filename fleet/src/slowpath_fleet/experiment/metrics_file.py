"""`metrics.toml`: what an experiment is judged by.

[[metric]]
name = "time_to_ready"
statistics = ["mean", "p50", "p95", "count_per_user"]
better = "lower"                      # or "higher"; of count_per_user and retention more is better

[retention]
days = [1, 2, 7]

[cuped]
before = "2026-03-05"                 # launches before this day are the pre-period

[arms]
control = 1                           # expected shares of users; without: equal
fix = 1
"""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path
from typing import Literal

import msgspec

from ..errors import wrong_usage
from ..regular_file import opened


class MetricWish(msgspec.Struct, forbid_unknown_fields=True):
    """A metric and the statistics of it."""

    name: str
    statistics: list[str] = msgspec.field(default_factory=lambda: ["mean", "p50", "p95", "count_per_user"])
    better: Literal["lower", "higher"] = "lower"


class RetentionWish(msgspec.Struct, forbid_unknown_fields=True):
    """Days after a user's first one."""

    days: list[int] = []


class CupedWish(msgspec.Struct, forbid_unknown_fields=True):
    """Where the pre-period ends."""

    before: datetime.date


class MetricsFile(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    metric: list[MetricWish] = []
    retention: RetentionWish = msgspec.field(default_factory=RetentionWish)
    cuped: CupedWish | None = None
    arms: dict[str, float] = {}


def read(path: Path) -> MetricsFile:
    """Reads and checks it."""
    try:
        with opened(path) as file:
            document = tomllib.load(file)
        found = msgspec.convert(document, MetricsFile)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        remedy = 'write [[metric]] name = "time_to_ready", statistics = ["mean", "p95"]'
        raise wrong_usage("cannot read the metrics", str(path), str(error), remedy) from error
    if any(not 1 <= day <= 3650 for day in found.retention.days):
        raise wrong_usage(
            "cannot read the metrics", str(path), "a day of retention is not 1..3650", "write days = [1, 7]"
        )
    if any(not share > 0 for share in found.arms.values()):
        raise wrong_usage("cannot read the metrics", str(path), "an arm's share is not positive", "write control = 1")
    return found
