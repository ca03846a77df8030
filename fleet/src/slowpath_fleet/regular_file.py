"""Files that others may have put there: read only if they are regular, replaced as a whole, never through a link."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from .errors import cannot, wrong_usage


def opened(path: Path) -> BufferedReader:
    """A regular file for reading; anything else, a FIFO without a writer for one, is an error and no wait."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise wrong_usage("cannot read", str(path), "it is no regular file", "copy its content into one")
    return os.fdopen(descriptor, "rb")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file of its user alone, beside `path`, which takes its place when the block ends well.

    What `path` is a link to stays as it is, and whoever reads `path` sees the old file or the whole new one.
    """
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        kind = stat.S_IFREG
    if not stat.S_ISREG(kind):
        what = "a link" if stat.S_ISLNK(kind) else "no regular file"
        raise wrong_usage("cannot write", str(path), f"it is {what}", "name a file, or one that is not there yet")
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise cannot("cannot write", str(path), str(error), "name a file in a directory you can write") from error
    os.close(descriptor)
    try:
        yield Path(name)
        # Renamed before it is on disk, an old file could be replaced by an empty one.
        with Path(name).open("rb") as written:
            os.fsync(written.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
