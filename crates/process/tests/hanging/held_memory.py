"""A process that holds the lock of its own memory map, as nobody who reads its maps, arguments or environment likes: prints its pid.

Started in a mount namespace of its own with a directory as argument. One thread reads a file of a file system that never answers, so a
page of the file stays locked; another maps the file, which waits for that page with the memory map locked for writing. All of it ends
with its process group.
"""

import os
import sys
import threading
import time

import fuse_file


def is_answered(call, _):
    if call == fuse_file.READ:
        os.write(is_read, b"x")
    return call != fuse_file.READ


fuse = fuse_file.mounted(sys.argv[1].encode())
reads, is_read = os.pipe()
if os.fork() == 0:
    fuse_file.serve(fuse, is_answered, lambda opened: fuse_file.DIRECT_IO if opened > 1 else 0)
os.close(fuse)
file = sys.argv[1].encode() + b"/f"
cached = os.open(file, os.O_RDONLY)
direct = os.open(file, os.O_RDONLY)
threading.Thread(target=os.read, args=(cached, 4096), daemon=True).start()
os.read(reads, 1)
keeper = threading.Thread(target=fuse_file.mapped, args=(direct, 1), daemon=True)
line = b"%d\n" % os.getpid()
keeper.start()
# Until it has reached the kernel. What Python allocates from now on may wait, too.
time.sleep(0.2)
os.write(1, line)
time.sleep(3600)
