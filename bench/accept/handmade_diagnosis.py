"""A diagnosis as it stands in a directory, with fixes that nobody had to prove: one of each treatment that a fix of the registry can have, and
files that can keep them. Applying does not depend on how a fix was proved."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ACL = "system.posix_acl_access"
DENIED_USER = 65533
TREE_FILES = 10
PLAN_RANGES = 20_000
VALUE = "a=1:b=50% \"$HOME\" 'x' `y` \\ z"
"""What every syntax has to quote."""


def acl(of_user: int) -> bytes:
    """An access control list: the owner reads and writes, DENIED_USER has these bits, nobody else any (linux/posix_acl_xattr.h)."""
    entries = [(0x01, 6, 0xFFFFFFFF), (0x02, of_user, DENIED_USER), (0x04, 0, 0xFFFFFFFF), (0x10, 4, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def variable(name: str, value: str) -> dict[str, Any]:
    """A treatment by a variable of the environment."""
    return {"kind": "environment", "variables": {name: value}}


@dataclass(frozen=True)
class Target:
    """A way to keep a fix: the options of `slowpath fix apply`, relative to the directory of files."""

    title: str
    options: list[str]


OF_VARIABLES = [
    Target("wrapper", ["--wrapper", "run"]),
    Target("environment file, new", ["--environment-file", "new-env"]),
    Target("environment file, changed", ["--environment-file", "env"]),
    Target("systemd drop-in", ["--systemd-unit", "app", "--user"]),
    Target("desktop file", ["--desktop-file", "app.desktop"]),
]
OF_PLANS = [Target("wrapper, plan", ["--wrapper", "run"]), Target("desktop file, plan", ["--desktop-file", "app.desktop", "--plan", "kept.plan"])]
OF_FILES = [Target("permissions", ["--permissions"])]


@dataclass(frozen=True)
class Fix:
    """A fix by its name in the registry; `name` where it has several treatments."""

    fix: str
    treatment: dict[str, Any]
    targets: list[Target] = field(default_factory=list)
    """None where no file can keep it."""
    name: str = ""

    @property
    def called(self) -> str:
        """As commands call it."""
        return self.name or self.fix


@dataclass(frozen=True)
class Place:
    """Directories of whoever applies: the diagnosis, a home, files, and a tree that denies."""

    path: Path

    @property
    def out(self) -> Path:
        """The diagnosis."""
        return self.path / "out"

    @property
    def home(self) -> Path:
        """Where records of what was applied are."""
        return self.path / "home"

    @property
    def files(self) -> Path:
        """What is changed, and where commands run."""
        return self.path / "files"

    def trees(self) -> dict[str, list[Path]]:
        """Directories with their files, by how they deny."""
        trees = {name: self.path / f"tree-{name}" for name in ("mode", "acl")}
        return {name: [tree, *(tree / str(number) for number in range(TREE_FILES))] for name, tree in trees.items()}

    def make(self, user: int, fixes: list[Fix]) -> None:
        """Makes everything, for a user."""
        for path in (self.out, self.home, self.files):
            path.mkdir(mode=0o700)
        (self.out / "p.plan").write_text(plan_text(), encoding="utf-8")
        (self.files / "app.desktop").write_text("[Desktop Entry]\nName=App\nExec=/bin/echo it runs %U\n", encoding="utf-8")
        (self.files / "env").write_text("OTHER=1", encoding="utf-8")
        (self.files / "env").chmod(0o640)
        for paths in self.trees().values():
            paths[0].mkdir(mode=0o700)
            for number, path in enumerate(paths[1:]):
                path.write_text(str(number), encoding="utf-8")
                path.chmod(0o600)
        for path in self.trees()["acl"][1:]:
            os.setxattr(path, ACL, acl(0))
        if os.geteuid() == 0:
            for path in [self.path, *self.path.rglob("*")]:
                os.chown(path, user, user)
        self.write([Fix(one.fix, self.filled(one), one.targets, one.name) for one in fixes])

    def filled(self, fix: Fix) -> dict[str, Any]:
        """The treatment, with the files of the tree that it names."""
        tree = fix.treatment.get("tree")
        return {"kind": "files", "files": [treated(path, tree) for path in self.trees()[tree]]} if tree else fix.treatment

    def write(self, fixes: list[Fix]) -> None:
        """The diagnosis, in which all are proved."""
        path = self.out / "diagnosis.json"
        path.write_text(json.dumps(diagnosis(fixes)), encoding="utf-8")
        if os.geteuid() == 0:
            owner = self.path.stat()
            os.chown(path, owner.st_uid, owner.st_gid)


def treated(path: Path, tree: str) -> dict[str, Any]:
    """A file that others may read when it is treated: everybody by its mode, DENIED_USER by its list."""
    found = path.lstat()
    before: dict[str, Any] = {"mode": found.st_mode, "acl": None}
    after: dict[str, Any] = {"mode": found.st_mode | (0o1 if path.is_dir() else 0o4), "acl": None}
    if tree == "acl" and path.is_file():
        before["acl"] = list(os.getxattr(path, ACL))
        after = {"mode": found.st_mode, "acl": list(acl(4))}
    identity: list[int] = [os.major(found.st_dev), os.minor(found.st_dev), found.st_ino]
    return {"path": str(path), "uid": found.st_uid, "gid": found.st_gid, "identity": identity, "before": before, "after": after}


def plan_text() -> str:
    """A preload plan of many ranges of one file."""
    options: dict[str, Any] = {
        "gap_pages": 2, "cap_bytes": 262144, "order": "first_use", "threads": 1, "in_flight_bytes": None, "metadata": False, "whole_files": False,
    }
    provenance: dict[str, Any] = {"created": "", "command": [], "recordings": []}
    head = {"schema": "slowpath-preload-plan/1", "provenance": provenance, "options": options, "files": 1, "ranges": PLAN_RANGES}
    file: dict[str, Any] = {"path": "/usr/bin/true", "size": 400_000_000, "mtime_ns": 0}
    return "".join(f"{json.dumps(line)}\n" for line in [head, file, *([0, number, 1] for number in range(PLAN_RANGES))])


def diagnosis(fixes: list[Fix]) -> dict[str, Any]:
    """What `slowpath diagnose` writes, in which all of these are proved."""
    measured = {"value": -12.0, "low": -13.0, "high": -11.0, "unit": "ms"}
    plans = [
        {
            "fix": one.fix, "name": one.called, "title": f"the fix {one.called}", "changes": [{"what": "the launch", "from": None, "to": "another"}],
            "scope": "launch", "privilege": "user", "side_effects": [], "price": "memory", "security_cost": "none", "undo": "unset it",
            "trial": {"possible": True, "how": "by a trial"}, "treatment": one.treatment,
        }
        for one in fixes
    ]
    verdicts: list[dict[str, Any]] = [
        {
            "arm": one.called, "fix": one.called, "judged_by": "cpu", "outcome": "helps", "decision": "proved", "predicted": None,
            "measured": measured, "minimum_detectable_effect": None, "pairs": 9, "discarded": 0, "reason": "", "beside": [],
        }
        for one in fixes
    ]
    launch = {"ready": "exit", "seed": 1, "blocks": 9, "conditions": [], "judged_by": "cpu", "arms": []}
    return {
        "schema": "slowpath-diagnose/1", "warm": True, "command": ["/bin/sh", "-c", "printf '%s|' \"$*\"", "sh"], "recording": "", "launch": launch,
        "findings": [], "fixes": plans, "verdicts": verdicts, "share_of_gap_removed": [], "losses": {}, "unavailable": [], "notes": [],
    }
