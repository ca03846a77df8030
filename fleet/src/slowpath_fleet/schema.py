"""Columns of field data, what is kept of them, and their units."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .errors import wrong_usage

MISSING: Final = "(missing)"
# Longest text of a dimension that is kept, in characters.
LONGEST_TEXT: Final = 256


@dataclass(frozen=True, slots=True)
class Dimension:
    """A column that launches are told apart by."""

    name: str
    meaning: str


DIMENSIONS: Final[tuple[Dimension, ...]] = (
    Dimension("population", "which product or fleet: ours, rival"),
    Dimension("experiment", "name of the experiment the launch took part in"),
    Dimension("arm", "arm of the experiment"),
    Dimension("version", "version of the program"),
    Dimension("device", "model of the device"),
    Dimension("soc", "system on a chip"),
    Dimension("ram", "class of memory"),
    Dimension("os", "operating system and its version"),
    Dimension("network", "kind of network"),
    Dimension("navigation", "kind of navigation"),
    Dimension("start", "cold, warm, isolated, ..."),
    Dimension("robot", "whether a robot launched it: true or false"),
    Dimension("extensions", "number or list of extensions"),
)

# Columns that are no dimensions.
MEASURED: Final = ("time", "user", "metric", "value", "unit")
# Names that field data use for the same columns.
ALIASES: Final = {
    "user_id": "user",
    "userid": "user",
    "client_id": "user",
    "timestamp": "time",
    "ts": "time",
    "is_robot": "robot",
    "bot": "robot",
}
# Columns of a stored row that no column of the data may claim, in any case: DuckDB tells `Day` and `day` not apart.
RESERVED: Final = frozenset(("day", "at", "user_key", "user_bucket", "bin", "place", "weight", "reason"))
# Columns of one file; beyond it, it is more likely a pivoted table than a list of launches.
MOST_COLUMNS: Final = 256

# Units of time and their length in ms, in which times are stored.
TIME_UNITS: Final = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3}
OTHER_UNITS: Final = ("bytes", "pages", "count", "ratio", "percent")
DEFAULT_UNIT: Final = "ms"

ROBOT_WORDS: Final = ("true", "t", "1", "1.0", "yes", "y", "robot", "bot")


def canonical(name: str) -> str:
    """Name under which a column of the data is kept."""
    folded = name.strip().lower()
    return ALIASES.get(folded, folded if folded in KNOWN else name.strip())


KNOWN: Final = frozenset(dimension.name for dimension in DIMENSIONS) | frozenset(MEASURED)


def storable(name: str) -> str:
    """A name that means nothing else in a stored row or in a query.

    The rule: columns that a query makes for itself end in `_`, those that a source adds begin with `__`, and a column
    of the data does neither. So no query can take a column of the data for its own, whatever the data are.
    """
    if name.lower() in RESERVED or name.endswith("_") or name.startswith("__"):
        return f"{name.strip('_') or 'column'}_of_data"
    return name


def mapped_columns(
    columns: list[str],
    source: str,
    renames: dict[str, str],
    keep: list[str] | None,
    stored: Iterable[str] = (),
) -> dict[str, str]:
    """Stored name -> column of the data.

    `renames` maps columns of the data to names; `keep` limits the columns beyond the known ones; `stored` are the names
    that the store has already, whose case is kept. Raises on more than `MOST_COLUMNS` and on names that clash.
    """
    spelled = {name.lower(): name for name in stored}
    absent = [name for name in renames if name not in columns]
    if absent:
        raise wrong_usage("cannot rename", source, f"there is no column {absent[0]!r}", "name a column of the file")
    found: dict[str, str] = {}
    # In lower case -> name: names that differ in case alone are one to SQL.
    taken: dict[str, str] = {}
    for column in columns:
        given = renames.get(column) or canonical(column)
        name = storable(given)
        if not given or (keep is not None and given not in KNOWN and not {column, given, name} & set(keep)):
            continue
        name = spelled.get(name.lower(), name)
        clash = taken.setdefault(name.lower(), name)
        if clash in found:
            raise wrong_usage(
                "cannot ingest",
                source,
                f"the columns {found[clash]!r} and {column!r} both are {name!r}",
                "rename one with --rename OLD=NEW",
            )
        found[name] = column
    if len(found) > MOST_COLUMNS:
        raise wrong_usage(
            "cannot ingest",
            source,
            f"it has {len(columns)} columns, more than {MOST_COLUMNS}",
            "name those that matter with --keep COLUMN[,COLUMN...]",
        )
    return found
