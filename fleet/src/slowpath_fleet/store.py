"""The store: a directory of Parquet files that any engine can read, and the manifest that says which of them count.

    STORE/store.json                                  what was ingested, batch by batch; readers trust it alone
    STORE/rows/day=2026-03-01/<batch>.parquet         launches that passed
    STORE/cells/<batch>.parquet                       log-bucket histograms by day and value of every dimension
    STORE/groups/<batch>.parquet                      the same in coarse bins by group of users, for variances
    STORE/users/<batch>.parquet                       a sample of the users of every value, to count them

A batch is what one `ingest` added. It is written under a temporary name, renamed and then listed, so that an
interrupted ingest leaves the store as it was; it is aggregated once, when it comes, and cells of batches add up.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from .cells import AGGREGATES
from .errors import cannot, wrong_usage
from .identity import SPECIFICATION
from .regular_file import opened, replacing

SCHEMA = "slowpath-fleet-store/3"
MANIFEST = "store.json"
# Values of a dimension up to which it is aggregated; beyond, its rows are kept and its cells are not made.
MOST_VALUES = 1000


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What one ingest of one source added."""

    name: str
    # Where it came from, for people.
    source: str
    # SHA-256 of what was read: the same bytes are not taken twice.
    digest: str
    rows: int
    kept: int
    # Sum of the weights of the kept rows.
    launches: int
    set_aside: dict[str, int]
    days: list[str]
    # Files with its rows, relative to the store.
    files: list[str]
    # Dimension -> number of its values in this batch.
    dimensions: dict[str, int]
    has_users: bool


class Manifest(msgspec.Struct, kw_only=True):
    """Content of `store.json`."""

    schema: str = SCHEMA
    user_hash: str = SPECIFICATION
    # Metric -> unit of all its values.
    units: dict[str, str] = {}
    batches: list[Batch] = []


class Store:
    """A store on disk, and its manifest as it was when it was opened."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self.directory, self.manifest = directory, manifest

    @staticmethod
    def open(directory: Path) -> Store:
        """Opens an existing store."""
        path = directory / MANIFEST
        try:
            with opened(path) as file:
                manifest = msgspec.json.decode(file.read(), type=Manifest)
        except FileNotFoundError as error:
            raise wrong_usage(
                "cannot open the store",
                str(directory),
                "it has no store.json",
                "make it: slowpath fleet ingest DATA -o STORE",
            ) from error
        except (msgspec.DecodeError, OSError) as error:
            raise cannot("cannot open the store", str(path), str(error), "ingest the data anew") from error
        if manifest.schema != SCHEMA:
            raise cannot("cannot open the store", str(path), f"its format is {manifest.schema}", "ingest the data anew")
        return Store(directory, manifest)

    @staticmethod
    def create(directory: Path) -> Store:
        """Opens a store, or begins one in a directory that is empty or not there."""
        if (directory / MANIFEST).exists():
            return Store.open(directory)
        if directory.is_dir() and any(entry.name != ".lock" for entry in directory.iterdir()):
            raise wrong_usage("cannot make a store", str(directory), "the directory holds other files", "name another")
        store = Store(directory, Manifest())
        try:
            # What users did is for whoever collects it; to let others read, change its mode.
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            store.write_manifest()
        except OSError as error:
            raise cannot("cannot make a store", str(directory), str(error), "name a directory you can write") from error
        return store

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time; what an interrupted one left is removed."""
        self.check_owner()
        name, flags = self.directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, 0o600)
        except OSError as error:
            raise cannot("cannot lock the store", str(name), str(error), "remove it, or name another store") from error
        with os.fdopen(descriptor, "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                why = "another ingest is writing to it"
                raise cannot("cannot write", str(self.directory), why, "wait until it ends") from error
            self.check_folders()
            # Another writer may have added to it since it was opened.
            self.manifest = Store.open(self.directory).manifest
            shutil.rmtree(self.scratch(), ignore_errors=True)
            self.remove_unlisted()
            self.scratch().mkdir(mode=0o700)
            try:
                yield
            finally:
                shutil.rmtree(self.scratch(), ignore_errors=True)

    def check_owner(self) -> None:
        """Refuses to write to a store of another user, who could replace a file in it by a link at any moment."""
        owner = self.directory.stat().st_uid
        if owner != os.geteuid():
            why = f"it belongs to the user {owner}"
            raise cannot("cannot write to the store", str(self.directory), why, "ingest as that user, or name another")

    def check_folders(self) -> None:
        """Refuses to write to a store with a link for a folder, as one from elsewhere can have.

        What it leads to is not the store's, and files would be removed and written there. Nobody but the caller, who
        owns the store, can make one later.
        """
        for kind in ("rows", *AGGREGATES):
            top = self.directory / kind
            inside = list(top.iterdir()) if kind == "rows" and top.is_dir() else []
            links = [path for path in inside if path.is_symlink() and path.is_dir()]
            for link in [top] * top.is_symlink() + links:
                raise cannot("cannot write to the store", str(link), "it is a link", "ingest the data into a new store")

    def remove_unlisted(self) -> None:
        """Removes files that the manifest does not list: of an ingest that ended between moving and listing them."""
        listed = {name for batch in self.manifest.batches for name in batch.files}
        listed |= {f"{kind}/{batch.name}.parquet" for kind in AGGREGATES for batch in self.manifest.batches}
        for kind in ("rows", *AGGREGATES):
            # No folder is a link, and links below are not followed.
            for folder, _, names in os.walk(self.directory / kind):
                for file in (Path(folder) / name for name in names if name.endswith(".parquet")):
                    if str(file.relative_to(self.directory)) not in listed:
                        file.unlink()

    def scratch(self) -> Path:
        """Where a batch is made, on the same file system."""
        return self.directory / ".tmp"

    def write_manifest(self) -> None:
        """Replaces the manifest as a whole."""
        with replacing(self.directory / MANIFEST) as file:
            file.write_bytes(msgspec.json.format(msgspec.json.encode(self.manifest), indent=1))

    def row_files(self, batches: list[Batch] | None = None) -> list[str]:
        """Files with rows, of all batches or of some."""
        chosen = self.manifest.batches if batches is None else batches
        names = [self.directory / name for one in chosen for name in one.files]
        missing = next((name for name in names if not name.exists()), None)
        if missing is not None:
            raise cannot("cannot read the store", str(missing), "the file is gone", "ingest the data anew")
        return [str(name) for name in names]

    def aggregate_file(self, kind: str, batch: Batch) -> str:
        """File with `cells` or `groups` of a batch."""
        return str(self.directory / kind / f"{batch.name}.parquet")

    def batches_with_rows(self) -> list[Batch]:
        """Batches that kept any row; an empty store is an error of use."""
        found = [one for one in self.manifest.batches if one.kept]
        if not found:
            raise wrong_usage("cannot compare", str(self.directory), "the store holds no row", "ingest data into it")
        return found

    def dimensions(self) -> dict[str, int]:
        """Dimension -> the largest number of values in a batch."""
        found: dict[str, int] = {}
        for batch in self.manifest.batches:
            for name, values in batch.dimensions.items():
                found[name] = max(values, found.get(name, 0))
        return found

    def metric(self, asked: str | None) -> str:
        """The metric that is asked for; without: the only one, or `time_to_ready`."""
        known = sorted(self.manifest.units)
        if asked is None:
            if len(known) == 1:
                return known[0]
            if "time_to_ready" in known:
                return "time_to_ready"
        if asked in known and asked is not None:
            return asked
        what = f"there is no metric {asked!r}" if asked else "it holds several metrics"
        raise wrong_usage(
            "cannot choose a metric", str(self.directory), what, f"--metric one of: {', '.join(known[:20])}"
        )
