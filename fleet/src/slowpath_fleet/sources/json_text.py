"""First look at a JSON file, which decides what kind of data it holds."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from .. import regular_file
from ..errors import wrong_usage

# Characters looked at. A `launch --json` names its schema in its first line.
LOOK = 64 << 10
SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
# A document that is read as a whole may have so many bytes, and so many values and lines: some bytes of text become a
# hundred in memory.
LARGEST_DOCUMENT = 256 << 20
MOST_VALUES = 1 << 24


def is_json(path: Path) -> bool:
    """By the name."""
    return path.name.lower().endswith(SUFFIXES)


def opened(path: Path) -> IO[bytes]:
    """The bytes, unpacked."""
    raw = regular_file.opened(path)
    return cast("IO[bytes]", Unpacked(raw)) if path.name.lower().endswith(".gz") else raw


class Unpacked(gzip.GzipFile):
    """Closes the file that it unpacks too."""

    def __init__(self, packed: IO[bytes]) -> None:
        super().__init__(fileobj=packed, mode="rb")
        self.packed = packed

    def close(self) -> None:
        """Closes both."""
        super().close()
        self.packed.close()


@contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Damage that Python's readers report in their own ways becomes an error of use."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        why = f"its compressed data are damaged or cut off ({error})"
        raise wrong_usage("cannot ingest", str(path), why, "copy or write it again") from error
    except RecursionError as error:
        raise wrong_usage("cannot ingest", str(path), "it is nested too deeply", "write flat records") from error


def whole(path: Path, remedy: str) -> bytes:
    """A document, where it is one that can be parsed in bounded memory."""
    with parsing(path), opened(path) as file:
        text = file.read(LARGEST_DOCUMENT + 1)
    if len(text) > LARGEST_DOCUMENT:
        raise wrong_usage("cannot ingest", str(path), f"it is larger than {LARGEST_DOCUMENT >> 20} MiB", remedy)
    # Whatever is nested or listed has one of these; those inside of strings count too.
    if sum(text.count(one) for one in (b",", b"[", b"{", b"\n", b"\r")) > MOST_VALUES:
        raise wrong_usage("cannot ingest", str(path), f"it has more than {MOST_VALUES:,} values", remedy)
    return text


def beginning(path: Path) -> str:
    """The first characters, without leading blanks."""
    with parsing(path), opened(path) as file:
        return file.read(LOOK).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")


def first_record(path: Path) -> Any:
    """First complete value of the file, looking into an array; None where it is longer than the look."""
    text = beginning(path)
    if text.startswith("["):
        text = text[1:].lstrip()
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None
