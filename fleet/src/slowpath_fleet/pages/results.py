"""Parts of a page for each kind of result."""

from __future__ import annotations

from ..printed import CompareResult, ExperimentResult, SlicesResult, Unavailable
from ..slices import nothing_found
from ..text_table import difference, measured, probability, relative
from .page import Cell, code, heading, paragraph, table
from .quantile_picture import picture


def remarks(notes: list[str], unavailable: list[Unavailable]) -> list[str]:
    """What stands below."""
    lines = notes + [f"No {one.what}: {one.reason}; {one.remedy}" for one in unavailable]
    return [paragraph(line, quiet=True) for line in lines]


def compare_parts(result: CompareResult) -> list[str]:
    """Picture, values, differences."""
    names = list(result.rows[0].quantiles) if result.rows else []
    rows: list[list[Cell | str]] = [
        [
            row.value,
            f"{row.n:,}",
            f"{row.users:,}" if row.users is not None else "-",
            *(measured(row.quantiles[name]) for name in names),
        ]
        for row in result.rows
    ]
    changes: list[list[Cell | str]] = [
        [f"{one.b} - {one.a}, p{one.quantile}", difference(one.difference), relative(one.relative)]
        for one in result.differences
    ]
    return [
        picture({row.value: row.quantiles for row in result.rows}),
        table([result.by, "launches", "users", *(f"p{name}" for name in names)], rows),
        heading("Differences"),
        table(["", "absolute", "relative"], changes),
        *remarks(result.notes, result.unavailable),
    ]


def slices_parts(result: SlicesResult) -> list[str]:
    """The gap, its slices, the recipe."""
    rows: list[list[Cell | str]] = [
        [
            ", ".join(f"{column} = {value}" for column, value in one.where.items()),
            relative(one.contribution),
            f"{one.within * 100:+.1f}%",
            f"{one.mix * 100:+.1f}%",
            f"{one.n:,}",
            probability(one.q),
            Cell("yes", "good") if one.confirmed else Cell("no", "bad"),
            "reversal" if one.reversal else "",
        ]
        for one in result.slices
    ]
    parts = [
        paragraph(
            f"Gap at p{result.quantile} of {result.metric} to {result.baseline}: {difference(result.gap)}. "
            f"Launches above {measured(result.threshold)}: {difference(result.excess)}."
        ),
    ]
    if not result.slices:
        parts.append(paragraph(nothing_found(result.tested)))
    else:
        parts.append(table(["slice", "share of excess", "within", "mix", "launches", "q", "confirmed", ""], rows))
        parts += [heading("To see the first one here"), code(result.slices[0].recipe)]
        parts += [paragraph(one) for one in result.slices[0].recipe_notes]
    parts += [
        paragraph(
            f"Simpson's paradox by {one.column}: {one.total * 100:+.2f} pp as a whole, "
            f"{one.within * 100:+.2f} pp with equal mixes."
        )
        for one in result.reversals
    ]
    return parts + remarks(result.notes, result.unavailable)


def experiment_parts(result: ExperimentResult) -> list[str]:
    """Sample ratio first, then a table an arm."""
    ratio = result.sample_ratio
    users = ", ".join(f"{arm} {n:,}" for arm, n in ratio.users.items())
    first: list[Cell | str] = [
        "no mismatch found" if ratio.ok else Cell("mismatch: see below", "bad"),
        probability(ratio.p),
        users,
    ]
    parts = [table(["sample ratio", "p", "users"], [first])]
    if ratio.assumed:
        parts.append(paragraph("Equal shares assumed; name them in [arms].", quiet=True))
    for arm in dict.fromkeys(one.arm for one in result.metrics):
        rows: list[list[Cell | str]] = []
        for one in result.metrics:
            if one.arm == arm:
                meaning = {True: "good", False: "bad", None: ""}[one.better]
                rows.append(
                    [
                        f"{one.metric}, {one.statistic}",
                        measured(one.arms[one.control]),
                        measured(one.arms[one.arm]),
                        difference(one.difference),
                        Cell(relative(one.relative), meaning),
                        probability(one.p),
                        Cell(one.reason or probability(one.p_adjusted), meaning),
                    ]
                )
        parts += [heading(arm), table(["metric", result.control, arm, "change", "relative", "p", "p adjusted"], rows)]
    return parts + remarks(result.notes, result.unavailable)
