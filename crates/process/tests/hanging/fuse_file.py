"""A file system with one file, `f`, whose calls a process answers or not (include/uapi/linux/fuse.h).

For processes that are started in a mount namespace of their own.
"""

import ctypes
import os
import struct

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
LOOKUP, GETATTR, OPEN, READ, STATFS, INIT = 1, 3, 14, 15, 17, 26
UNANSWERED = (2, 36, 42)
ENOSYS = 38
DIRECT_IO = 1
SIZE = 8192
TEXT = b"a program of its own".ljust(SIZE)


def end_with_parent():
    """Of the calling process (PR_SET_PDEATHSIG, SIGKILL)."""
    libc.prctl(1, 9)


def mounted(place):
    """The descriptor of a file system that is mounted there, of a process that ends with who started it."""
    end_with_parent()
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fuse
    assert libc.mount(b"slowpath-test", place, b"fuse", 6, options) == 0
    return fuse


def mapped(file, protection):
    """Where the file is mapped, all of it and private."""
    return libc.mmap(None, ctypes.c_size_t(SIZE), protection, 2, file, ctypes.c_long(0))


def attributes(node):
    mode = 0o100755 if node == 2 else 0o40755
    return struct.pack("6Q10I", node, SIZE, 16, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def serve(fuse, is_answered, flags=lambda opened: 0):
    """Answers for ever, but for calls of which `is_answered(call, opened)` is false; `opened` counts OPEN, whose answer has these flags."""
    end_with_parent()
    opened = 0
    while True:
        asked = os.read(fuse, 1 << 17)
        _, call, unique, node = struct.unpack("IIQQ", asked[:24])
        if call in UNANSWERED or not is_answered(call, opened):
            continue
        opened += call == OPEN
        start, size = struct.unpack("QI", asked[48:60]) if call == READ else (0, 0)
        answers = {
            INIT: struct.pack("IIIIHHIIHHI28x", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, 0),
            LOOKUP: struct.pack("4Q2I", 2, 0, 0, 0, 0, 0) + attributes(2),
            GETATTR: struct.pack("QII", 0, 0, 0) + attributes(node),
            OPEN: struct.pack("QII", 0, flags(opened), 0),
            READ: TEXT[start : start + size],
            STATFS: bytes(80),
        }
        answer = answers.get(call, b"")
        os.write(fuse, struct.pack("IiQ", 16 + len(answer), 0 if answer else -ENOSYS, unique) + answer)
