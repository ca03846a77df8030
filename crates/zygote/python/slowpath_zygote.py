"""Preload once, fork isolated children in milliseconds.

A zygote is a process that has imported what its children need, and waits:

    import slowpath_zygote
    import pandas                                  # what all children need
    slowpath_zygote.serve("/run/shop/zygote", main)  # main(arguments) is the work of a child

Another program asks it for children:

    child = slowpath_zygote.spawn("/run/shop/zygote", ["job", "17"], fds={1: output})
    child.wait()

One file without dependencies. It loads libslowpath_zygote_c.so from SLOWPATH_ZYGOTE_LIBRARY, from the wheel that it was
installed from, or where the system's dynamic loader finds it. Python 3.11 or later. Documentation: docs/zygote.md.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["Child", "ZygoteError", "serve", "spawn"]


class ZygoteError(Exception):
    """It cannot be done: an argument is wrong (code 2), or the zygote or the machine cannot (code 3)."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Child(ctypes.Structure):
    _fields_ = [
        ("argument_count", ctypes.c_size_t),
        ("arguments", ctypes.POINTER(ctypes.c_char_p)),
        ("variable_count", ctypes.c_size_t),
        ("variables", ctypes.POINTER(ctypes.c_char_p)),
        ("seed", ctypes.POINTER(ctypes.c_ubyte)),
    ]


# The interpreter's lock is held throughout, so that it is the forking thread's on both sides.
_RUN = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Child), ctypes.c_void_p)


class _Program(ctypes.Structure):
    _fields_ = [
        ("run", _RUN),
        ("before_fork", ctypes.c_void_p),
        ("after_fork_in_zygote", ctypes.c_void_p),
        ("after_fork_in_child", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
    ]


class _Request(ctypes.Structure):
    _fields_ = [
        ("arguments", ctypes.POINTER(ctypes.c_char_p)),
        ("variables", ctypes.POINTER(ctypes.c_char_p)),
        ("namespaces", ctypes.c_char_p),
        ("filter", ctypes.c_char_p),
        ("filter_length", ctypes.c_size_t),
        ("flags", ctypes.c_uint),
        ("uid", ctypes.c_uint),
        ("gid", ctypes.c_uint),
        ("descriptor_count", ctypes.c_size_t),
        ("descriptors", ctypes.POINTER(ctypes.c_int)),
        ("numbers", ctypes.POINTER(ctypes.c_uint)),
        ("zygote_uid", ctypes.c_uint),
    ]


_IDENTITY = 1
_ALLOW_SPECULATION = 2
_OF_USER = 4


_LIBRARY = "libslowpath_zygote_c.so"


def _path() -> str:
    # The source is a file without a place where `slowpath zygote serve` hands it to an interpreter.
    place = globals().get("__file__")
    beside = Path(place).with_name(_LIBRARY) if place else None
    found = str(beside) if beside and beside.exists() else _LIBRARY
    return os.environ.get("SLOWPATH_ZYGOTE_LIBRARY", found)


def _client() -> ctypes.CDLL:
    library = ctypes.CDLL(_path())
    text = ctypes.POINTER(ctypes.c_void_p)
    library.slowpath_zygote_spawn.argtypes = [ctypes.c_char_p, ctypes.POINTER(_Request), text, text]
    library.slowpath_zygote_wait.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int), text]
    library.slowpath_zygote_signal.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.slowpath_zygote_pid.argtypes = [ctypes.c_void_p]
    library.slowpath_zygote_descriptor.argtypes = [ctypes.c_void_p]
    library.slowpath_zygote_close.argtypes = [ctypes.c_void_p]
    library.slowpath_zygote_close.restype = None
    library.slowpath_zygote_free.argtypes = [ctypes.c_void_p]
    library.slowpath_zygote_free.restype = None
    return library


def _taken(library: ctypes.CDLL, text: ctypes.c_void_p) -> str:
    if text.value is None:
        return "there is no reason"
    try:
        return ctypes.string_at(text.value).decode(errors="replace")
    finally:
        library.slowpath_zygote_free(text)


def _strings(words: Sequence[str | bytes]) -> Any:
    encoded = [os.fsencode(word) for word in words]
    if any(b"\0" in word for word in encoded):
        raise ZygoteError(2, "a null byte ends a string of C")
    return (ctypes.c_char_p * (len(encoded) + 1))(*encoded, None)


def _hook(name: str) -> int | None:
    # What os.fork calls around the fork: locks of the interpreter, and what modules registered (os.register_at_fork).
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


def _renew(seed: bytes, variables: Sequence[bytes]) -> None:
    """Makes what must differ between children differ. `random` renews itself at a fork."""
    for variable in variables:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(int.from_bytes(seed[:4], "little"))
    # What was registered belongs to the zygote.
    atexit._clear()


def _done(main: Callable[[list[str]], object], arguments: list[str]) -> int:
    """The exit code that an interpreter would have."""
    code = 0
    try:
        result = main(arguments)
        code = result if isinstance(result, int) else 0
    except SystemExit as end:
        if isinstance(end.code, int) or end.code is None:
            code = end.code or 0
        else:
            print(end.code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            code = code or 120
    return code & 0xFF


def serve(
    socket: str | os.PathLike[str] | None, main: Callable[[list[str]], object], *, policy: str | None = None
) -> None:
    """Serves children until SIGTERM or SIGINT, or until the policy ends it.

    `socket` is the path to listen at; None takes the socket that a service manager or `slowpath zygote serve` hands
    over. `main` is the work of a child: its value, if an int, is the exit code. `policy` is a policy's text (TOML).

    The process must have one thread (ZygoteError names the others). Objects that exist are frozen (gc.freeze), so that
    collecting garbage in a child does not copy their pages.
    """

    def run(child: Any, _data: object) -> int:
        given = child.contents
        arguments = [os.fsdecode(given.arguments[index]) for index in range(given.argument_count)]
        variables = [given.variables[index] for index in range(given.variable_count)]
        _renew(bytes(given.seed[:32]), variables)
        return _done(main, arguments)

    library = ctypes.PyDLL(_path())
    text = ctypes.POINTER(ctypes.c_void_p)
    library.slowpath_zygote_serve.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_Program), text]
    library.slowpath_zygote_free.argtypes = [ctypes.c_void_p]
    library.slowpath_zygote_free.restype = None
    program = _Program(
        _RUN(run),
        _hook("PyOS_BeforeFork"),
        _hook("PyOS_AfterFork_Parent"),
        _hook("PyOS_AfterFork_Child"),
        None,
    )
    gc.collect()
    gc.freeze()
    error = ctypes.c_void_p()
    where = None if socket is None else os.fsencode(socket)
    rules = None if policy is None else policy.encode()
    code = int(library.slowpath_zygote_serve(where, rules, ctypes.byref(program), ctypes.byref(error)))
    if code != 0:
        raise ZygoteError(code, _taken(library, error))


class Child:
    """A child that began its work. It ends when this is closed, or forgotten."""

    def __init__(self, library: ctypes.CDLL, handle: int) -> None:
        self._library = library
        self._handle: int | None = handle
        self.pid = int(library.slowpath_zygote_pid(handle))
        """Its process id in the zygote's pid namespace."""
        self.returncode: int | None = None
        """As that of subprocess.Popen, once it was waited for: negative is a signal."""

    def fileno(self) -> int:
        """Readable when the child has ended: for select and asyncio."""
        return int(self._library.slowpath_zygote_descriptor(self._open()))

    def _open(self) -> int:
        if self._handle is None:
            raise ZygoteError(2, "the child was closed")
        return self._handle

    def wait(self) -> int:
        """Waits until it ends; its exit code, or the negative number of a signal."""
        if self.returncode is None:
            status, error = ctypes.c_int(), ctypes.c_void_p()
            code = self._library.slowpath_zygote_wait(self._open(), ctypes.byref(status), ctypes.byref(error))
            if code != 0:
                raise ZygoteError(code, _taken(self._library, error))
            self.returncode = os.waitstatus_to_exitcode(status.value)
        return self.returncode

    def send_signal(self, signal: int) -> None:
        """Has the zygote send it a signal."""
        if self._library.slowpath_zygote_signal(self._open(), signal) != 0:
            raise ZygoteError(3, "the zygote is gone")

    def close(self) -> None:
        """Ends it, if it has not ended."""
        if self._handle is not None:
            self._library.slowpath_zygote_close(self._handle)
            self._handle = None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def spawn(
    socket: str | os.PathLike[str],
    arguments: Sequence[str | bytes],
    *,
    env: Mapping[str, str] | None = None,
    fds: Mapping[int, int] | None = None,
    uid: int | None = None,
    gid: int | None = None,
    namespaces: Sequence[str] = (),
    seccomp: bytes | None = None,
    allow_speculation: bool = False,
    zygote_uid: int | None = None,
) -> Child:
    """Asks a zygote for a child, and waits until it begins its work.

    `fds` gives numbers in the child to descriptors of this process; 0, 1 and 2 are /dev/null unless they are named.
    `uid` and `gid` go together. `seccomp` is a filter as raw instructions (struct sock_filter after another).
    The zygote must be root's, this process's own user's, or that of the user `zygote_uid`: it gets the descriptors.
    Raises ZygoteError where there is no child, and OSError where there is no library.
    """
    library = _client()
    pairs = list((fds or {}).items())
    request = _Request()
    request.arguments = _strings(arguments)
    request.variables = _strings([f"{name}={value}" for name, value in (env or {}).items()])
    request.namespaces = ",".join(namespaces).encode()
    request.filter, request.filter_length = seccomp, len(seccomp or b"")
    request.flags = _ALLOW_SPECULATION if allow_speculation else 0
    if (uid is None) != (gid is None):
        raise ZygoteError(2, "uid and gid go together")
    if uid is not None and gid is not None:
        request.flags |= _IDENTITY
        request.uid, request.gid = uid, gid
    if zygote_uid is not None:
        request.flags |= _OF_USER
        request.zygote_uid = zygote_uid
    request.descriptor_count = len(pairs)
    request.descriptors = (ctypes.c_int * len(pairs))(*[given for _, given in pairs])
    request.numbers = (ctypes.c_uint * len(pairs))(*[number for number, _ in pairs])
    child, error = ctypes.c_void_p(), ctypes.c_void_p()
    where = os.fsencode(socket)
    code = library.slowpath_zygote_spawn(where, ctypes.byref(request), ctypes.byref(child), ctypes.byref(error))
    if code != 0 or child.value is None:
        raise ZygoteError(code, _taken(library, error))
    return Child(library, child.value)


def _as_interpreter(arguments: list[str]) -> object:
    """What `python3 ARGUMENTS` does, in this process: -c CODE, -m MODULE, or a file."""
    import runpy

    match arguments:
        case ["-c", code, *rest]:
            sys.argv = ["-c", *rest]
            space = {"__name__": "__main__", "__builtins__": __builtins__}
            exec(compile(code, "<string>", "exec"), space)
        case ["-m", module, *rest]:
            sys.argv = [module, *rest]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [file, *rest] if not file.startswith("-"):
            sys.argv = [file, *rest]
            sys.path.insert(0, str(Path(file).resolve().parent))
            runpy.run_path(file, run_name="__main__")
        case _:
            raise SystemExit("a child of a Python zygote takes -c CODE, -m MODULE or a file, as python3 does")
    return 0


def _template(words: list[str]) -> None:
    """What `slowpath zygote serve --preload python:MODULES` runs: modules, entry, and `once` with arguments."""
    modules, entry, *once = words
    for module in filter(None, modules.split(",")):
        importlib.import_module(module)
    main: Callable[[list[str]], object] = _as_interpreter
    if entry:
        module, _, function = entry.partition(":")
        main = getattr(importlib.import_module(module), function)
    policy = os.environ.pop("SLOWPATH_ZYGOTE_POLICY", None)
    if once:
        if os.environ.pop("SLOWPATH_ZYGOTE_PROBE", None):
            ready = os.getpid().to_bytes(4, sys.byteorder)
            while os.write(3, ready) and os.read(3, 1):
                pass
            os._exit(0)
        os._exit(_done(main, once[1:]))
    # A child has no name of its program to give.
    try:
        serve(None, lambda arguments: main(arguments[1:]), policy=policy)
    except ZygoteError as error:
        sys.exit(f"slowpath_zygote: {error}")
