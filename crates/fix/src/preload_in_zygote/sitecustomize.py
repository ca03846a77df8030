"""Has Python import what the children of a program all import, once, in the process that forks them.

Written by `slowpath diagnose` for the launches of one trial, which find it through PYTHONPATH. In a program, the same
is multiprocessing.set_start_method("forkserver") with multiprocessing.set_forkserver_preload([...]), or the imports
before os.fork.

The file `modules` beside this one begins with a line that says how the children start: `spawned` (executed, by
multiprocessing) or `forked`. Each further line is a module, by the path of its file without what follows the name.
"""

from __future__ import annotations

import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from multiprocessing.process import BaseProcess
    from types import ModuleType

HERE = os.path.dirname(os.path.abspath(__file__))
# Tells the fork server where its parent finds modules.
PATH_OF_PARENT = "SLOWPATH_PATH_OF_PARENT"


def names(files: list[str], folders: list[str]) -> list[str]:
    """The modules, as `folders` (a sys.path) finds them."""
    roots = sorted({os.path.join(folder, "") for folder in folders if os.path.isabs(folder)}, key=len, reverse=True)
    found = []
    for file in files:
        root = next((root for root in roots if file.startswith(root)), None)
        if root is not None:
            found.append(file[len(root) :].replace("/", "."))
    return found


def import_all(files: list[str]) -> None:
    """Imports them, but for those that need more than this process has: the child that imports such a one says so."""
    for name in names(files, sys.path):
        try:
            __import__(name)
        except Exception:
            pass


def import_before_fork(files: list[str]) -> None:
    """Imports them before the first fork of this process."""
    fork = os.fork

    def fork_with_modules() -> int:
        os.fork = fork
        import_all(files)
        return fork()

    os.fork = fork_with_modules


class ModuleOfServer:
    """The one module that a fork server imports, which imports the others."""

    NAME = "slowpath_preload"

    def __init__(self, files: list[str]) -> None:
        """`files` are the others."""
        self.files = files

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As importlib.abc.MetaPathFinder says."""
        if name != self.NAME:
            return None
        from _frozen_importlib import ModuleSpec

        return ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """As importlib.abc.Loader says."""

    def exec_module(self, module: ModuleType) -> None:
        """As importlib.abc.Loader says."""
        import_all(self.files)


def take_from_fork_server(context: ModuleType) -> None:
    """Has multiprocessing start by its fork server what it would execute."""
    # Several threads may start children.
    one_at_a_time = _thread.allocate_lock()

    def start(process: BaseProcess) -> object:
        from multiprocessing import forkserver
        from multiprocessing.popen_forkserver import Popen

        with one_at_a_time:
            given = forkserver._forkserver._preload_modules  # type: ignore[attr-defined]
            if ModuleOfServer.NAME not in given:
                forkserver.set_forkserver_preload([*given, ModuleOfServer.NAME])
            os.environ[PATH_OF_PARENT] = os.pathsep.join(sys.path)
            try:
                forkserver.ensure_running()
            finally:
                del os.environ[PATH_OF_PARENT]
        return Popen(process)

    context.SpawnProcess._Popen = staticmethod(start)


class AfterImport:
    """Waits for multiprocessing to be imported, if it ever is."""

    MODULE = "multiprocessing.context"

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As importlib.abc.MetaPathFinder says."""
        if name != self.MODULE:
            return None
        sys.meta_path.remove(self)
        # importlib.machinery would be one more import of each process.
        from _frozen_importlib_external import PathFinder

        spec: ModuleSpec | None = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                take_from_fork_server(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def import_hidden() -> None:
    """Runs the sitecustomize that this one stands before, as Python would without it."""
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != HERE]
    this = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if this is not None:
            sys.modules["sitecustomize"] = this


def main() -> None:
    """What a start of Python does with it."""
    import_hidden()
    with open(os.path.join(HERE, "modules"), encoding="utf-8", errors="surrogateescape") as file:
        how, *files = file.read().split("\n")
    folders = os.environ.pop(PATH_OF_PARENT, None)
    if folders is not None:
        sys.path.extend(folder for folder in folders.split(os.pathsep) if folder not in sys.path)
        sys.meta_path.insert(0, ModuleOfServer(files))
    elif how == "spawned":
        sys.meta_path.insert(0, AfterImport())
    else:
        import_before_fork(files)


main()
