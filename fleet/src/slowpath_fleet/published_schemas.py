"""JSON schemas of what the commands print, from their types.

python -m slowpath_fleet.published_schemas DIRECTORY     writes fleet-<command>.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from .commands.registry import COMMANDS


def schemas() -> dict[str, str]:
    """File name -> text."""
    return {f"fleet-{command.name}.json": schema(command.result) for command in COMMANDS}


def schema(kind: type[msgspec.Struct]) -> str:
    """Schema of one type."""
    (root,), definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    whole: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    whole |= definitions.pop(kind.__name__, root)
    if definitions:
        whole["$defs"] = definitions
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, text in schemas().items():
        (Path(sys.argv[1]) / name).write_text(text)
