"""A file of a file system that answers until it is asked what the second argument says (a number of include/uapi/linux/fuse.h; the first
OPEN does not count), and nothing from then on: maps it executable, and prints its pid and where.

Started in a mount namespace of its own with a directory as first argument. With a socket and a message in hex as further arguments it sends
that there, with the descriptor of the file. All of it ends with its process group.
"""

import os
import signal
import socket
import sys

import fuse_file

place, last = sys.argv[1].encode(), int(sys.argv[2])
hangs = False


def is_answered(call, opened):
    global hangs
    hangs = hangs or (call == last and opened > 0)
    return not hangs


fuse = fuse_file.mounted(place)
if os.fork() == 0:
    fuse_file.serve(fuse, is_answered)
# Held by its server alone: with that the file system ends, and nobody waits for an answer at his own end.
os.close(fuse)
file = os.open(place + b"/f", os.O_RDONLY)
if len(sys.argv) > 3:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(sys.argv[3])
    socket.send_fds(client, [bytes.fromhex(sys.argv[4])], [file])
print(os.getpid(), fuse_file.mapped(file, 5), flush=True)
while True:
    signal.pause()
