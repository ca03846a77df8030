"""Finding slices: test all combinations on one half of the users, keep what the false-discovery rate allows, take the
best, take its launches out, and go on; confirm on the other half."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..bins import upper_edge
from ..clustered import REMEDY, Estimate, QuantileEstimate
from ..clustered import difference as quantile_difference
from ..compare import estimate
from ..distributions import by_value, distribution
from ..engine import Engine, known_dimension
from ..errors import wrong_usage
from ..histogram import Floats, Integers
from ..identity import GROUPS
from ..printed import SlicesResult, Unavailable, finite, quantity, unit_of
from ..store import Store
from . import listing
from .cube import Counts, Cube, Where, combination, one_slice, people, read_cube, stacked, totals
from .decomposition import Tested, adjusted, design_effect, evidence, excess, tested

# Assigned, or left out: no conditions of a launch.
NOT_A_CONDITION = ("experiment", "arm", "robot")
# A slice is tested with so many launches, so many of them above the threshold, and users in so many of the groups.
FEWEST_LAUNCHES, FEWEST_ABOVE, FEWEST_GROUPS = 200, 30, 40
# Slices listed at most.
MOST_LISTED = 20
# Even groups look for slices, odd ones confirm them.
DISCOVERY, HELD_OUT = np.arange(0, GROUPS, 2), np.arange(1, GROUPS, 2)


@dataclass(frozen=True, slots=True)
class SliceOptions:
    """What is looked for."""

    by: str
    baseline: str | None
    metric: str | None
    # Name in percent and share.
    quantile: tuple[str, float]
    depth: int
    fdr: float
    # Columns that slices are made of; None: all that are conditions.
    columns: list[str] | None
    # Command line of the program, for the recipe.
    program: str | None
    # File with the artifacts of a machine of the slice, for the recipe.
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Slices with enough launches."""

    wheres: list[Where]
    counts: Counts


def find_slices(store: Store, engine: Engine, options: SliceOptions) -> SlicesResult:
    """Looks for the slices that hold the gap between a baseline and all other values of a column."""
    known_dimension(store, options.by, "cannot look for slices by")
    metric = store.metric(options.metric)
    unit = unit_of(store.manifest.units[metric])
    both, all_groups = (engine.summed(kind, options.by, metric) for kind in ("cells", "groups"))
    cells, groups = of_people(both), of_people(all_groups)
    robots = int(pc.sum(both["n"]).as_py() or 0) - int(pc.sum(cells["n"]).as_py() or 0)
    found = by_value(cells, groups)
    baseline = chosen_baseline(sorted(found, key=lambda v: (-found[v].histogram.n, v)), options)
    if not all(one.clustered for one in found.values()):
        remedy = "send a pseudonymous user with every launch, or use `compare`"
        raise wrong_usage("cannot look for slices", str(store.directory), "launches have no user to hold out", remedy)
    others = distribution(without(cells, baseline), without(groups, baseline))
    share = options.quantile[1]
    threshold = found[baseline].histogram.bin_at(share)
    columns, left_out = usable_columns(store, options)
    rows = people(engine, metric)
    cube = read_cube(engine, rows, options.by, baseline, threshold, columns)
    total = totals(cube)
    result = search(cube, options.depth, options.fdr)
    picked = result.picked
    of_total = tested(total, total)
    named = [listing.named(cube, one.where) for one in picked]
    found_slices = listing.Found(
        wheres=named,
        counts=stacked([one.counts for one in picked]) if picked else None,
        q=[one.q for one in picked],
        confirmed=confirmed(picked, total, options.fdr),
        users=listing.users_of(engine, rows, named) if picked else [],
    )
    base, rest = estimate(found[baseline], share), estimate(others, share)
    edge = upper_edge(threshold)
    return SlicesResult(
        by=options.by,
        baseline=baseline,
        metric=metric,
        quantile=options.quantile[0],
        threshold=quantity(Estimate(edge, float("nan"), float("nan")), unit),
        gap=quantity(quantile_difference(base, rest), unit),
        excess=quantity(listing.interval(excess_of(total), of_total.gap_error[0], of_total.freedom), "ratio"),
        slices=listing.listed(found_slices, total, options.program, options.state),
        reversals=listing.reversals(cube, total),
        tested=result.tested,
        folded=result.significant - len(picked),
        notes=notes(options, baseline, of_total, excess_of(total), robots),
        unavailable=left_out + without_interval({baseline: base, "the others": rest}, options.quantile[0]),
    )


def without_interval(sides: dict[str, QuantileEstimate], quantile: str) -> list[Unavailable]:
    """Why the gap has no interval: a side has none."""
    return [
        Unavailable("interval of the gap", f"p{quantile} of {side}: {one.missing}", REMEDY)
        for side, one in sides.items()
        if one.missing is not None
    ]


def nothing_found(tested: int) -> str:
    """What an empty list of slices means: nothing was significant, or nothing could be tested."""
    if tested:
        return "No slice found: no combination was significant."
    return (
        f"Nothing tested: no combination has {FEWEST_LAUNCHES} launches on one side, {FEWEST_ABOVE} above the "
        f"threshold and users in {FEWEST_GROUPS} groups. Collect more launches or lower --quantile."
    )


def chosen_baseline(values: list[str], options: SliceOptions) -> str:
    """The value that others are compared with."""
    remedy = f"--baseline one of: {', '.join(values[:10])}"
    if len(values) < 2:
        raise wrong_usage(
            "cannot look for slices by", options.by, "all launches have the same value", "use another column"
        )
    if options.baseline is None:
        if options.by == "population" and "rival" in values:
            return "rival"
        raise wrong_usage("cannot look for slices by", options.by, "no baseline is named", remedy)
    if options.baseline not in values:
        raise wrong_usage("cannot use the baseline", options.baseline, f"{options.by} has no such value", remedy)
    return options.baseline


def of_people(cells: pa.Table) -> pa.Table:
    """Cells without those of robots."""
    return cells.filter(pc.invert(cells["robot"]))


def without(cells: pa.Table, value: str) -> pa.Table:
    """Cells of all values but one."""
    return cells.filter(pc.not_equal(cells["value"], value))


def usable_columns(store: Store, options: SliceOptions) -> tuple[list[str], list[Unavailable]]:
    """Columns that slices are made of, and those that cannot be."""
    dimensions = store.dimensions()
    asked = (
        options.columns if options.columns is not None else [name for name in dimensions if name not in NOT_A_CONDITION]
    )
    left_out = []
    columns = []
    for name in asked:
        if name == options.by:
            continue
        if options.columns is not None:
            known_dimension(store, name, "cannot make slices of")
        if dimensions[name] > 1000:
            why = f"it has about {dimensions[name]} values"
            left_out.append(Unavailable(f"slices by {name}", why, "derive a coarser column from it"))
        elif dimensions[name] > 1 or len(store.manifest.batches) > 1:
            columns.append(name)
    return sorted(columns), left_out


def supported(cube: Cube, depth: int) -> Candidates:
    """All combinations up to a depth that have enough launches."""
    wheres: list[Where] = []
    launches, above = [], []
    for size in range(1, depth + 1):
        for columns in itertools.combinations(range(len(cube.columns)), size):
            found, counts = combination(cube, columns)
            per_group = counts.launches.sum(axis=1)
            enough = (
                (counts.launches.sum(axis=2).max(axis=1) >= FEWEST_LAUNCHES)
                & (counts.above.sum(axis=(1, 2)) >= FEWEST_ABOVE)
                & ((per_group > 0).sum(axis=1) >= FEWEST_GROUPS)
                & (per_group.sum(axis=1) < 0.999 * cube.launches.sum())
            )
            chosen = np.flatnonzero(enough)
            wheres += [found[one] for one in chosen]
            launches.append(counts.launches[chosen])
            above.append(counts.above[chosen])
    if not wheres:
        return Candidates([], Counts(np.zeros((0, 2, GROUPS)), np.zeros((0, 2, GROUPS))))
    return Candidates(wheres, Counts(np.concatenate(launches), np.concatenate(above)))


@dataclass(frozen=True, slots=True)
class Picked:
    """A slice that was found: the launches of it that no slice before it holds, and its adjusted p."""

    where: Where
    counts: Counts
    q: float


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found, best first, and of how many slices that were tested how many are significant."""

    picked: list[Picked]
    tested: int
    significant: int


def search(cube: Cube, depth: int, fdr: float) -> Searched:
    """Looks for slices on one half of the users. Pure."""
    candidates = supported(cube, depth)
    if not candidates.wheres:
        return Searched([], 0, 0)
    total = totals(cube)
    p = tested(candidates.counts.of_groups(DISCOVERY), total.of_groups(DISCOVERY)).p
    q = adjusted(p)
    significant = np.flatnonzero(q <= fdr)
    limit = float(p[significant].max()) if len(significant) else 0.0
    found = greedy(cube, candidates, significant, total, limit)
    picked = [Picked(candidates.wheres[number], counts, float(q[number])) for number, counts in found]
    return Searched(picked, len(candidates.wheres), len(significant))


def greedy(
    cube: Cube, candidates: Candidates, significant: Integers, total: Counts, limit: float
) -> list[tuple[int, Counts]]:
    """The slices that describe the excess, best first: number, and what no slice before it holds. `limit` is the
    largest p that counts as found.

    A slice's parents and children share its launches and are significant with it. The one with the most evidence for
    its length is the best description: in a parent ordinary launches dilute it, a child lacks launches that are slow
    too. Its launches are taken out and the others judged by what is left, so that contributions add up.
    """
    picked: list[tuple[int, Counts]] = []
    free = np.ones(len(cube.side), bool)
    open_ones = [int(one) for one in significant]
    lengths = description_lengths([len(where) for where in candidates.wheres])
    while open_ones and len(picked) < MOST_LISTED:
        residual = stacked([one_slice(cube, candidates.wheres[one], free) for one in open_ones])
        half = residual.of_groups(DISCOVERY)
        result = tested(half, total.of_groups(DISCOVERY))
        alive = (result.p <= limit) & (residual.launches.sum(axis=(1, 2)) >= FEWEST_LAUNCHES)
        if not alive.any():
            break
        repeats = design_effect(half.pick(np.flatnonzero(alive)), result.gap_error[alive])
        clear = evidence(half, total.of_groups(DISCOVERY)) / repeats - lengths[open_ones]
        best = int(np.argmax(np.where(alive, clear, -np.inf)))
        number = open_ones[best]
        picked.append((number, residual.pick(np.asarray([best]))))
        free &= ~cube.inside(candidates.wheres[number])
        open_ones = [one for one, lives in zip(open_ones, alive, strict=True) if lives and one != number]
    return picked


def description_lengths(sizes: list[int]) -> Floats:
    """What naming each candidate takes, in nats: ln of how many have as many conditions or fewer (two-part code with
    any number of conditions as likely as another: Rissanen, Automatica 1978).

    There are more combinations of many conditions, so the best of them is better by chance.
    """
    return np.asarray(np.log(np.cumsum(np.bincount(sizes))[sizes]), np.float64)


def confirmed(picked: list[Picked], total: Counts, fdr: float) -> list[bool]:
    """Whether each picked slice contributes in the same direction on the users that were held out."""
    if not picked:
        return []
    chosen = stacked([one.counts for one in picked])
    again = tested(chosen.of_groups(HELD_OUT), total.of_groups(HELD_OUT))
    first = tested(chosen.of_groups(DISCOVERY), total.of_groups(DISCOVERY))
    same = np.sign(again.whole.contribution) == np.sign(first.whole.contribution)
    # One-sided: the direction is given.
    return [bool(one) for one in same & (adjusted(again.p / 2) <= fdr)]


def excess_of(total: Counts) -> float:
    """Others' rate less the baseline's."""
    return float(excess(total.launches.sum(2), total.above.sum(2))[0])


def notes(options: SliceOptions, baseline: str, of_total: Tested, gap: float, robots: int) -> list[str]:
    """What the table does not show."""
    found = [
        f"Slices are searched on one half of the users (false-discovery rate {options.fdr:g}) and confirmed on the "
        "other half. Contributions are of all users, so those of unconfirmed slices tend to be too large."
    ]
    if robots:
        found.append(f"{robots:,} launches of robots were left out.")
    if abs(gap) < 2 * float(of_total.gap_error[0]):
        name = options.quantile[0]
        found.append(f"There is no clear gap to {baseline} at p{name}: contributions are shares of an uncertain whole.")
    if finite(gap) is not None and gap < 0:
        found.append("The others have fewer launches above the threshold: contributions are shares of a deficit.")
    return found
