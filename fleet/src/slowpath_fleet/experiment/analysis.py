"""One experiment from its launches to its table."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..engine import Engine
from ..errors import wrong_usage
from ..printed import ExperimentResult, MetricEffect, SampleRatio, Unavailable, finite, quantity, unit_of
from ..schema import MISSING
from ..store import Store
from .effect import Effect
from .many_tests import LEVEL, always_valid, holm
from .metrics_file import MetricsFile, MetricWish
from .retention import days_seen, retention
from .sample_ratio import sample_ratio
from .statistic import STATISTICS, MetricData, statistic
from .units import Population, population, unit_bins, unit_sums

CONTROL_NAMES = ("control", "baseline", "base", "a", "off", "default")


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """What is asked."""

    unit: str
    experiment: str | None
    control: str | None
    metrics: MetricsFile
    always_valid: bool
    # Units for which always-valid intervals are narrowest; fixed before the first look.
    planned: float


def analyse(store: Store, engine: Engine, options: ExperimentOptions) -> ExperimentResult:
    """Sample ratio first, then every statistic of every metric, corrected for their number."""
    wishes = options.metrics.metric or [MetricWish(store.metric(None))]
    for wish in wishes:
        store.metric(wish.name)
        unknown = next((name for name in wish.statistics if statistic(name) is None), None)
        if unknown is not None:
            known = ", ".join(one.example for one in STATISTICS)
            raise wrong_usage("cannot compute the statistic", unknown, "there is none of that name", f"use {known}")
    before = options.metrics.cuped.before if options.metrics.cuped else None
    experiment = options.experiment or only_experiment(store, engine)
    people = population(store, engine, options.unit, experiment, before)
    users = people.users()
    control = chosen_control(people.arms, options.control)
    ratio = sample_ratio(users, options.metrics.arms)
    rows = []
    days = options.metrics.retention.days
    seen = days_seen(people) if days else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    for treatment in (arm for arm in people.arms if arm != control):
        arms = (people.arm == people.arms.index(control), people.arm == people.arms.index(treatment))
        for wish in wishes:
            unit = unit_of(store.manifest.units[wish.name])
            good = 1 if wish.better == "higher" else -1
            data = MetricData(people, unit_sums(people, wish.name), unit_bins(people, wish.name), unit, good)
            for name in wish.statistics:
                kind = statistic(name)
                if kind is not None:
                    rows.append((wish.name, name, treatment, kind.effect(data, arms, name)))
        for day in days:
            rows.append(("retention", f"day {day}", treatment, retention(seen, people, arms, day)))
    if options.always_valid:
        units = len(people.arm)
        rows = [(*row[:3], always_valid(row[3], units, options.planned)) for row in rows]
    adjusted = holm([row[3].p for row in rows])
    return ExperimentResult(
        experiment=experiment,
        unit=options.unit,
        control=control,
        sample_ratio=ratio,
        metrics=[printed(*row, control, p) for row, p in zip(rows, adjusted, strict=True)],
        correction="holm",
        always_valid=options.always_valid,
        robots=people.robots,
        mixed_users=people.mixed,
        notes=notes(people, ratio, options),
        unavailable=[
            Unavailable(f"estimate of {metric} {name} for {arm}", effect.reason, effect.remedy)
            for metric, name, arm, effect in rows
            if effect.reason is not None and effect.remedy is not None
        ],
    )


def only_experiment(store: Store, engine: Engine) -> str | None:
    """The experiment of the data, where there is one; several are an error."""
    if "experiment" not in store.dimensions():
        return None
    found = set()
    for metric in store.manifest.units:
        found |= set(engine.cells("cells", "experiment", metric)["value"].unique().to_pylist())
    found.discard(MISSING)
    if len(found) > 1:
        remedy = f"--experiment one of: {', '.join(sorted(found)[:10])}"
        raise wrong_usage("cannot choose an experiment", str(store.directory), f"it holds {len(found)}", remedy)
    return found.pop() if found else None


def chosen_control(arms: list[str], asked: str | None) -> str:
    """The arm that others are compared with."""
    if len(arms) < 2:
        raise wrong_usage("cannot judge an experiment", "", f"its only arm is {arms[0]}", "check the column 'arm'")
    if asked is not None:
        if asked not in arms:
            raise wrong_usage(
                "cannot use the control", asked, "there is no such arm", f"--control one of: {', '.join(arms)}"
            )
        return asked
    return next((arm for name in CONTROL_NAMES for arm in arms if arm.lower() == name), arms[0])


def printed(metric: str, name: str, arm: str, effect: Effect, control: str, p_adjusted: float) -> MetricEffect:
    """One line of the table."""
    significant = not math.isnan(p_adjusted) and p_adjusted < LEVEL
    return MetricEffect(
        metric=metric,
        statistic=name,
        arm=arm,
        control=control,
        arms={control: quantity(effect.control, effect.unit), arm: quantity(effect.treatment, effect.unit)},
        difference=quantity(effect.difference, effect.unit),
        relative=quantity(effect.relative, "ratio"),
        p=finite(effect.p),
        p_adjusted=finite(p_adjusted),
        better=(effect.difference.value * effect.good > 0) if significant else None,
        reason=effect.reason,
    )


def notes(people: Population, ratio: SampleRatio, options: ExperimentOptions) -> list[str]:
    """What a reader must know."""
    found = []
    if not ratio.ok and ratio.assumed:
        found.append(
            "The arms do not have equal numbers of users: name the shares of the assignment in [arms] of --metrics; "
            "if they were equal, do not trust the effects."
        )
    elif not ratio.ok:
        found.append("The arms do not have the users they should (sample ratio mismatch): do not trust the effects.")
    if people.robots:
        found.append(f"{people.robots:,} launches of robots were left out.")
    if people.mixed:
        found.append(f"{people.mixed:,} units with launches in several arms were left out.")
    if people.before is not None:
        found.append(f"Means and counts are adjusted by each unit's launches before {people.before} (CUPED).")
    if options.always_valid:
        kind = (
            "Intervals of change and relative are 95 %, clustered by unit, and hold at every look; arms have none then"
        )
    else:
        kind = "Intervals are 95 %, clustered by unit, and hold for one look, at the planned end"
    found.append(f"{kind}; adjusted p: Holm.")
    return found
