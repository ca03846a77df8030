"""Text from data without what a terminal or a reader takes for something else: control and format characters."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, TypeVar

import msgspec

from .text_table import printable

Kind = TypeVar("Kind", bound=msgspec.Struct)
# Cc and Cf (U+009B, U+202E, ...), and what stands for no character or begins a line.
ESCAPED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def struct(result: Kind) -> Kind:
    """A result whose every text, names of maps included, can be printed."""
    return msgspec.convert(_value(msgspec.to_builtins(result)), type(result))


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_value(one) for one in value]
    if isinstance(value, dict):
        return {printable(key): _value(one) for key, one in value.items()}
    return value


def json(value: Any) -> str:
    """JSON in which these characters are escapes; outside of strings it has none of them."""
    return re.sub(r"[^ -~]", _escape, msgspec.json.encode(value).decode())


def _escape(found: re.Match[str]) -> str:
    one = found[0]
    if unicodedata.category(one) not in ESCAPED:
        return one
    units = one.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
