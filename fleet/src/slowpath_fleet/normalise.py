"""From the columns of a source to judged rows: SQL text for DuckDB, nothing is run here.

A row that cannot be used has a `reason`; the first that applies counts. Reasons are names that stay:

    not_json malformed_row not_a_histogram bad_bucket never_ready not_a_beacon no_metrics
    not_otlp bad_point cumulative                                     (the source could not read it)
    null_value not_a_number nan infinite negative too_large           (value)
    null_time bad_time  null_metric  null_user  unknown_unit unit_conflict
"""

from __future__ import annotations

from . import bins, identity
from .schema import (
    DEFAULT_UNIT,
    LONGEST_TEXT,
    MEASURED,
    MISSING,
    OTHER_UNITS,
    ROBOT_WORDS,
    TIME_UNITS,
)
from .sources import FAULT, WEIGHT, RawTable
from .sql_text import identifier, literal

NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
# Beyond these years a time is a mistake of its unit.
EARLIEST, LATEST = "1990-01-01", "2100-01-01"
# Beyond it the number of a bin would not fit in 16 bits.
LARGEST = 1e200


def is_numeric(kind: str) -> bool:
    """Whether a type of DuckDB is a number."""
    return kind.upper().split("(")[0].removeprefix("U") in NUMERIC and not kind.endswith("]")


def text_sql(column: str) -> str:
    """A column as trimmed text; empty is null."""
    return f"nullif(trim({column}::VARCHAR), '')"


def given_sql(column: str, kind: str) -> str:
    """Text of a column for its reason to be set aside; of numbers and times only whether there is one: text of them
    takes longer to make than all the rest of a row, and nobody reads it."""
    if is_numeric(kind) or kind.upper().startswith("TIMESTAMP") or kind.upper() == "DATE":
        return f"CASE WHEN {column} IS NOT NULL THEN 'given' END"
    return text_sql(column)


def number_sql(column: str, kind: str) -> str:
    """A column as DOUBLE; null where it is no number."""
    if is_numeric(kind):
        return f"{column}::DOUBLE"
    if kind.upper() == "VARCHAR":
        return f"TRY_CAST(trim({column}) AS DOUBLE)"
    return "NULL::DOUBLE"


def time_sql(column: str, kind: str) -> str:
    """A column as TIMESTAMP in UTC; numbers are s, ms, us or ns since 1970, by their size."""
    upper = kind.upper()
    if upper.startswith("TIMESTAMP WITH"):
        return f"make_timestamp(epoch_us({column}))"
    if upper.startswith("TIMESTAMP") or upper == "DATE":
        return f"TRY_CAST({column} AS TIMESTAMP)"
    epoch = number_sql(column, kind)
    scale = (
        f"(CASE WHEN abs({epoch}) < 1e11 THEN 1e6 WHEN abs({epoch}) < 1e14 THEN 1e3 "
        f"WHEN abs({epoch}) < 1e17 THEN 1 ELSE 1e-3 END)"
    )
    from_number = (
        f"CASE WHEN isfinite({epoch}) AND abs({epoch}) < 1e20 THEN make_timestamp(({epoch} * {scale})::BIGINT) END"
    )
    if upper == "VARCHAR":
        return f"coalesce({from_number}, TRY_CAST(trim({column}) AS TIMESTAMP))"
    return f"({from_number})" if is_numeric(kind) else "NULL::TIMESTAMP"


def judged_sql(raw: RawTable, columns: dict[str, str], metric: str | None, units: dict[str, str] | None) -> str:
    """SELECT of the stored columns and `reason`.

    `columns`: stored name -> column of the relation; `metric`: name for all rows where there is no such column;
    `units`: the unit of each metric, where it is known already. What the inner SELECTs compute ends in `_`, which no
    stored column does (`schema.storable`).
    """
    where = {name: identifier(column) for name, column in columns.items()}
    kind = {name: raw.columns[column] for name, column in columns.items()}
    value = number_sql(where["value"], kind["value"])
    fault = identifier(FAULT) if FAULT in raw.added else "NULL::VARCHAR"
    weight = f"coalesce({identifier(WEIGHT)}, 1)::BIGINT" if WEIGHT in raw.added else "1::BIGINT"
    unit = f"coalesce(lower({text_sql(where['unit'])}), '{DEFAULT_UNIT}')" if "unit" in where else f"'{DEFAULT_UNIT}'"
    name = literal(metric) if metric is not None else text_sql(where["metric"])
    user = text_sql(where["user"]) if "user" in where else "NULL::VARCHAR"
    factor = " ".join(f"WHEN '{unit_name}' THEN {length!r}" for unit_name, length in TIME_UNITS.items())
    dimensions = [column for column in columns if column not in MEASURED]
    first = ", ".join(
        [
            f"{fault} AS fault_",
            f"{given_sql(where['value'], kind['value'])} AS text_",
            f"{value} * (CASE {unit} {factor} ELSE 1 END) AS value_",
            f"{time_sql(where['time'], kind['time'])} AS at_",
            f"{given_sql(where['time'], kind['time'])} AS time_",
            f"{name} AS metric_",
            f"CASE WHEN {unit} IN ({quoted(TIME_UNITS)}) THEN 'ms' ELSE {unit} END AS unit_",
            f"{user} AS user_",
            f"{weight} AS weight_",
            *(f"{dimension_sql(one, where[one])} AS {identifier(one)}" for one in dimensions),
        ]
    )
    return (
        f"SELECT {reason_sql('user' in where, units)} AS reason, at_ AS at, at_::DATE AS day, "
        f"left(metric_, {LONGEST_TEXT}) AS metric, unit_, value_ AS value, {bins.bin_sql('usable_')} AS bin, "
        f"{bins.place_sql('usable_')} AS place, weight_ AS weight, {identity.key_sql('user_')} AS user_key"
        + "".join(f", {identifier(one)}" for one in dimensions)
        + " FROM (SELECT *, CASE WHEN isfinite(value_) AND value_ BETWEEN 0 "
        + f"AND {LARGEST!r} THEN value_ END AS usable_ "
        + f"FROM (SELECT {first} FROM {raw.relation})) WHERE weight_ > 0"
    )


def quoted(words: dict[str, float] | tuple[str, ...]) -> str:
    """Words as an SQL list without brackets."""
    return ", ".join(literal(word) for word in words)


def dimension_sql(name: str, column: str) -> str:
    """A dimension as text; robots as true or false."""
    if name == "robot":
        word = f"lower({text_sql(column)})"
        return f"CASE WHEN {word} IN ({quoted(ROBOT_WORDS)}) THEN 'true' ELSE 'false' END"
    return f"left(coalesce({text_sql(column)}, '{MISSING}'), {LONGEST_TEXT})"


def reason_sql(has_user: bool, units: dict[str, str] | None) -> str:
    """Why a row is set aside; null where it is not."""
    known = quoted(("ms", *OTHER_UNITS))
    cases = [
        "fault_ IS NOT NULL THEN fault_",
        "text_ IS NULL THEN 'null_value'",
        "value_ IS NULL THEN CASE WHEN lower(text_) IN ('null', 'none', 'na', 'n/a') THEN 'null_value' "
        "ELSE 'not_a_number' END",
        "isnan(value_) THEN 'nan'",
        "isinf(value_) THEN 'infinite'",
        "value_ < 0 THEN 'negative'",
        f"value_ > {LARGEST!r} THEN 'too_large'",
        "at_ IS NULL THEN CASE WHEN time_ IS NULL THEN 'null_time' ELSE 'bad_time' END",
        f"at_ < TIMESTAMP '{EARLIEST}' OR at_ >= TIMESTAMP '{LATEST}' THEN 'bad_time'",
        "metric_ IS NULL THEN 'null_metric'",
        f"unit_ NOT IN ({known}) THEN 'unknown_unit'",
    ]
    if has_user:
        cases.append("user_ IS NULL THEN 'null_user'")
    for metric, unit in (units or {}).items():
        cases.append(f"metric_ = {literal(metric)} AND unit_ <> {literal(unit)} THEN 'unit_conflict'")
    return "CASE " + " ".join(f"WHEN {case}" for case in cases) + " END"
