"""What the commands print with `--json`: one type each. The published schemas are made from these types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from .clustered import Estimate

Unit = Literal["ns", "us", "ms", "s", "bytes", "pages", "count", "ratio", "percent"]


def described(text: str) -> msgspec.Meta:
    """Description of a field in the schema."""
    return msgspec.Meta(description=text)


class Quantity(msgspec.Struct, frozen=True):
    """A measured value with its 95 % interval."""

    value: Annotated[float | None, described("The estimate; null where there are no data for it.")]
    low: Annotated[float | None, described("Lower end; null where no interval can be given.")]
    high: Annotated[float | None, described("Upper end; null where no interval can be given.")]
    unit: Annotated[Unit, described("Unit of all three.")]


class Unavailable(msgspec.Struct, frozen=True):
    """What could not be observed or done."""

    what: str
    reason: str
    remedy: str


class IngestSource(msgspec.Struct, frozen=True):
    """One file or recording."""

    source: str
    rows: int
    kept: int
    set_aside: dict[str, int]


class IngestResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `slowpath fleet ingest`."""

    schema: Literal["slowpath-fleet-ingest/1"] = "slowpath-fleet-ingest/1"
    store: str
    rows: Annotated[int, described("Rows that were read.")]
    kept: Annotated[int, described("Rows that are in the store now.")]
    set_aside: Annotated[dict[str, int], described("Rows that cannot be used, by reason; rows = kept + all of these.")]
    sources: Annotated[
        list[IngestSource], described("Sources that were added; those known already are not among them.")
    ]
    skipped: Annotated[int, described("Sources left out because the same bytes were ingested before.")]


class CompareRow(msgspec.Struct, frozen=True):
    """One value of the column."""

    value: str
    n: Annotated[int, described("Launches.")]
    users: Annotated[int | None, described("Different users; null where the data have none.")]
    quantiles: Annotated[dict[str, Quantity], described("By quantile in percent.")]


class Difference(msgspec.Struct, frozen=True):
    """Quantile of b less that of a."""

    a: str
    b: str
    quantile: Annotated[str, described("In percent.")]
    difference: Annotated[Quantity, described("In the metric's unit; of ratios, a difference of them.")]
    relative: Annotated[Quantity, described("Share of a.")]


class CompareResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `slowpath fleet compare`."""

    schema: Literal["slowpath-fleet-compare/1"] = "slowpath-fleet-compare/1"
    by: str
    metric: str
    rows: Annotated[list[CompareRow], described("Most launches first.")]
    differences: list[Difference]
    notes: Annotated[list[str], described("What a reader must know to read the figures.")]
    unavailable: list[Unavailable]


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """A combination of values and what it contributes to the gap."""

    where: Annotated[dict[str, str], described("Column and value; a launch must have all of them.")]
    contribution: Annotated[
        Quantity, described("Part of the excess of launches above the threshold, without what slices before it hold.")
    ]
    mix: Annotated[float, described("Part of the contribution that is a larger or smaller share of launches.")]
    within: Annotated[float, described("Part of the contribution that is slower launches of the same kind.")]
    gap: Annotated[Quantity, described("Difference of the shares of launches above the threshold inside the slice.")]
    n: Annotated[int, described("Launches, of both sides, that no slice before it holds.")]
    users: Annotated[int | None, described("Different users of the slice, of both sides.")]
    q: Annotated[float, described("Benjamini-Hochberg adjusted p, on one half of the users.")]
    reversal: Annotated[bool, described("Inside, the sides compare the other way round than its contribution says.")]
    confirmed: Annotated[bool, described("Found again on the other half of the users.")]
    recipe: Annotated[str, described("Command that makes such launches here.")]
    recipe_notes: Annotated[list[str], described("Conditions that the command cannot make.")]


class Reversal(msgspec.Struct, frozen=True):
    """A column whose mix-adjusted difference has the opposite sign of the whole (Simpson's paradox)."""

    column: str
    total: Annotated[float, described("Difference of the shares above the threshold.")]
    within: Annotated[float, described("The same with equal mixes on both sides.")]


class SlicesResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `slowpath fleet slices`."""

    schema: Literal["slowpath-fleet-slices/1"] = "slowpath-fleet-slices/1"
    by: str
    baseline: str
    metric: str
    quantile: Annotated[str, described("In percent.")]
    threshold: Annotated[Quantity, described("The baseline's quantile: launches above it count.")]
    gap: Annotated[Quantity, described("The others' quantile less the baseline's.")]
    excess: Annotated[Quantity, described("The others' share of launches above the threshold less the baseline's.")]
    slices: Annotated[list[Slice], described("Best first.")]
    reversals: list[Reversal]
    tested: Annotated[int, described("Combinations with enough launches and users.")]
    folded: Annotated[int, described("Significant combinations that another one in the list describes better.")]
    notes: list[str]
    unavailable: list[Unavailable]


class SampleRatio(msgspec.Struct, frozen=True):
    """Whether the arms have as many users as they should."""

    p: float
    ok: Annotated[bool, described("Whether no mismatch was found (p >= 0.001), which does not prove the assignment.")]
    users: dict[str, int]
    expected: Annotated[dict[str, float], described("Expected share of the users of every arm.")]
    assumed: Annotated[
        bool, described("No shares were named in [arms]: equal ones are assumed. The exit code stays 0.")
    ]


class MetricEffect(msgspec.Struct, frozen=True, kw_only=True):
    """One statistic of one metric, of an arm against the control."""

    metric: str
    statistic: str
    arm: str
    control: str
    arms: Annotated[
        dict[str, Quantity], described("By arm; without intervals where `always_valid`: theirs would not hold then.")
    ]
    difference: Quantity
    relative: Quantity
    p: float | None
    p_adjusted: float | None
    better: Annotated[bool | None, described("Whether the change is for the better; null where it is not significant.")]
    reason: Annotated[str | None, described("Why there is no effect to show.")]


class ExperimentResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `slowpath fleet experiment`."""

    schema: Literal["slowpath-fleet-experiment/1"] = "slowpath-fleet-experiment/1"
    experiment: str | None
    unit: str
    control: str
    sample_ratio: SampleRatio
    metrics: list[MetricEffect]
    correction: Literal["holm", "benjamini-hochberg"]
    always_valid: bool
    robots: Annotated[int, described("Launches of robots, which were left out.")]
    mixed_users: Annotated[int, described("Users with launches in several arms, who were left out.")]
    notes: list[str]
    unavailable: list[Unavailable]


class DayPoint(msgspec.Struct, frozen=True):
    """One day of a series."""

    day: str
    n: Annotated[int, described("Launches.")]
    quantiles: Annotated[dict[str, Quantity], described("By quantile in percent.")]


class Series(msgspec.Struct, frozen=True):
    """Days of a slice; those without a launch are not listed."""

    where: Annotated[dict[str, str], described("Column and value; empty: all launches.")]
    metric: str
    days: list[DayPoint]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A day from which on a slice is slower or faster."""

    where: Annotated[dict[str, str], described("Column and value; empty: all launches.")]
    metric: str
    quantile: Annotated[str, described("In percent.")]
    day: Annotated[str, described("First day of the new level.")]
    version: Annotated[str | None, described("Version that the change came with; null where no version did.")]
    direction: Literal["worse", "better"]
    before: Annotated[Quantity, described("The quantile from `since` to the day before.")]
    after: Annotated[Quantity, described("The quantile from the day to `until`.")]
    difference: Quantity
    relative: Annotated[Quantity, described("Share of `before`.")]
    q: Annotated[float, described("Benjamini-Hochberg adjusted p over all series.")]
    since: str
    until: Annotated[str, described("Last day of the new level: before it went or changed again, or of the window.")]
    n: Annotated[list[int], described("Launches before and after.")]


class WatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `slowpath fleet watch`."""

    schema: Literal["slowpath-fleet-watch/1"] = "slowpath-fleet-watch/1"
    metric: str
    since: Annotated[str, described("First day of the series.")]
    until: Annotated[str, described("Last day.")]
    series: Annotated[list[Series], described("All launches first, then slices that changed.")]
    changes: Annotated[list[Change], described("The clearest first.")]
    tested: Annotated[int, described("Series, at each quantile, that were searched for changes.")]
    folded: Annotated[int, described("Changes of slices that are no larger than that of all launches.")]
    notes: list[str]
    unavailable: list[Unavailable]


def finite(value: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return float(value) if value == value and abs(value) != float("inf") else None


def quantity(estimate: Estimate, unit: Unit, scale: float = 1.0) -> Quantity:
    """An estimate with its unit."""
    low, high = (estimate.low, estimate.high) if estimate.has_interval else (float("nan"), float("nan"))
    return Quantity(finite(estimate.value * scale), finite(low * scale), finite(high * scale), unit)


def unit_of(name: str) -> Unit:
    """A unit of the store, which ingest has checked."""
    return msgspec.convert(name, Unit)  # type: ignore[no-any-return]


class QueryColumn(msgspec.Struct, frozen=True):
    """A column of an answer."""

    name: str
    type: Annotated[str, described("Its type, as DuckDB calls it.")]


class QueryResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `slowpath query`."""

    schema: Literal["slowpath-query/1"] = "slowpath-query/1"
    columns: list[QueryColumn]
    rows: Annotated[list[list[Any]], described("Values in the order of the columns; null for SQL's NULL and for NaN.")]
