"""Clients of a zygote for an acceptance run, each a process: what they ask for, what they are answered, and how that is counted.

A client writes a record when it asks and one when it has its answer, into a pipe that all share; so a request without an answer is seen, also of
a client that was killed."""

from __future__ import annotations

import array
import os
import random
import signal
import socket
import struct
import time
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path

RECORD = struct.Struct("=IHH")
"""Client, what, unused: shorter than PIPE_BUF, so records of several clients do not mix."""
LONGEST_S = 150
"""A client that waits longer for one answer ends by SIGALRM: the library itself gives up after 60 s."""
HELD_S = 0.02
"""How long a child that is to be found by the killer works at most."""

CHILD = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The OOM killer takes children that work, and not the zygote. */
static void may_be_taken(void) {
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file >= 0) { if (write(file, "900", 3) != 3) _exit(78); close(file); }
}

static int may_only_what_it_should(unsigned int id) {
    uid_t u[3]; gid_t g[3]; char line[256]; int none = 0;
    if (getresuid(&u[0], &u[1], &u[2]) || getresgid(&g[0], &g[1], &g[2])) return 77;
    for (int at = 0; at < 3; ++at) if (u[at] != id || g[at] != id) return 77;
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) return 79;
    while (fgets(line, sizeof line, status))
        none += strcmp(line, "CapEff:\t0000000000000000\n") == 0 || strcmp(line, "CapPrm:\t0000000000000000\n") == 0 ||
                strcmp(line, "NoNewPrivs:\t1\n") == 0;
    fclose(status);
    return getgroups(0, NULL) == 0 && none == 3 ? 0 : 77;
}

int slowpath_zygote_main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "", *how = count > 2 ? words[2] : "0";
    may_be_taken();
    if (strcmp(what, "exit") == 0) return atoi(how);
    if (strcmp(what, "as") == 0) return may_only_what_it_should((unsigned int)atoi(how));
    if (strcmp(what, "work") == 0) { usleep((useconds_t)atoi(how)); return 3; }
    if (strcmp(what, "take") == 0) {
        size_t bytes = (size_t)atoi(how) << 20;
        char *memory = malloc(bytes);
        if (!memory) return 4;
        memset(memory, 1, bytes);
        usleep(20000);
        return memory[bytes - 1] == 1 ? 0 : 5;
    }
    for (;;) pause();
}
"""
"""What is preloaded."""


class What(IntEnum):
    """Records: a request, then what came of it."""

    ASKED = 0
    EXITED = 1
    KILLED = 2
    SIGNALLED = 3
    LEFT = 4
    ISOLATED = 5
    TOOK = 6
    BUSY = 10
    FAILED = 11
    GONE = 12
    HOSTILE_ANSWERED = 20
    HOSTILE_CLOSED = 21
    STRANGER_REFUSED = 22
    WRONG = 30
    PRIVILEGED = 31
    UNCLEAR = 32
    LATE = 33
    UNANSWERED = 34
    STRANGER_SERVED = 35


RAN = (What.EXITED, What.KILLED, What.SIGNALLED, What.LEFT, What.ISOLATED, What.TOOK)
"""A child began its work."""
CLEAR = (What.BUSY, What.FAILED, What.GONE)
"""There was none, and the client was told why."""
WORDS = {
    What.EXITED: "the child ran, and its exit code came",
    What.KILLED: "the child was killed by somebody (the killer, the OOM killer), and its client was told by which signal",
    What.SIGNALLED: "the child ended by the signal that its client sent through the zygote",
    What.LEFT: "the client left its child, which had to end",
    What.ISOLATED: "the child had the uid, gid, groups, capabilities and no_new_privs asked for, and no more",
    What.TOOK: "the child took 24 MiB and gave it back",
    What.BUSY: "refused: no descriptor, or as many children as the policy has",
    What.FAILED: "a step of making the child failed, which the client was told (no descriptor, no memory)",
    What.GONE: "the zygote was killed before it answered, or while the child ran, which the client was told",
    What.HOSTILE_ANSWERED: "hostile request, answered",
    What.HOSTILE_CLOSED: "hostile request, connection closed (by the client itself, or the zygote was killed)",
    What.STRANGER_REFUSED: "user 99007, whom the policy does not name: refused",
    What.WRONG: "**wrong exit code**",
    What.PRIVILEGED: "**a child had more than it should**",
    What.UNCLEAR: "**an error that does not say what happened**",
    What.LATE: "**no answer within 60 s**",
    What.UNANSWERED: "**a hostile request without an answer**",
    What.STRANGER_SERVED: "**user 99007 was served**",
}
STRANGER = 99007


def of_error(text: str) -> What:
    """What an error of the library says."""
    if "did not answer within" in text:
        return What.LATE
    if "the zygote refuses" in text:
        busy = ("children are alive", "no pipe can be made", "Too many open files", "no room for", "no descriptor", "descriptors")
        return What.BUSY if any(word in text for word in busy) else What.UNCLEAR
    if "cannot create the child" in text:
        return What.FAILED
    gone = ("closed the connection before it answered", "no zygote answers", "Connection reset", "ECONNRESET", "Broken pipe")
    return What.GONE if any(word in text for word in gone) else What.UNCLEAR


class Client:
    """What a client process does until it is asked to end (SIGTERM) or killed."""

    def __init__(self, number: int, place: Path, pipe: int, seed: int) -> None:
        self.number, self.place, self.pipe = number, str(place), pipe
        self.random = random.Random(seed)
        self.is_over = False
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _end(self, _number: int, _frame: object) -> None:
        self.is_over = True

    def say(self, what: What) -> None:
        """A record."""
        os.write(self.pipe, RECORD.pack(self.number, what, 0))

    def ask(self) -> None:
        """One request after another."""
        while not self.is_over:
            signal.alarm(LONGEST_S)
            self.say(What.ASKED)
            what, text = self.one()
            if what >= What.WRONG:
                os.write(2, f"zygote-spawns: {what.name}: {text}\n".encode())
            self.say(what)
            if what in CLEAR:
                time.sleep(self.random.uniform(0.001, 0.01))

    def one(self) -> tuple[What, str]:
        """A request, and what comes of it."""
        import slowpath_zygote

        kind = self.random.choices(("exit", "as", "signal", "leave", "take", "work"), (40, 15, 12, 10, 3, 20))[0]
        code, uid = self.random.randrange(1, 64), self.random.randrange(99100, 99200)
        words = {
            "exit": ["exit", str(code)],
            "as": ["as", str(uid)],
            "take": ["take", "24"],
            "work": ["work", str(int(self.random.uniform(0, HELD_S) * 1e6))],
        }.get(kind, ["wait"])
        identity = {"uid": uid, "gid": uid} if kind == "as" else {}
        try:
            with slowpath_zygote.spawn(self.place, ["job", *words], **identity) as child:
                if kind == "leave":
                    return What.LEFT, ""
                if kind == "signal":
                    child.send_signal(signal.SIGUSR1)
                ended = child.wait()
        except slowpath_zygote.ZygoteError as error:
            return of_error(str(error)), f"{kind}: {error}"
        if ended == -signal.SIGKILL:
            return What.KILLED, ""
        expected = {"exit": code, "as": 0, "signal": -signal.SIGUSR1, "take": 0, "work": 3}[kind]
        if ended == expected:
            ran = {"as": What.ISOLATED, "signal": What.SIGNALLED, "take": What.TOOK}
            return ran.get(kind, What.EXITED), ""
        return What.PRIVILEGED if ended == 77 else What.WRONG, f"{kind} ended with {ended}, not {expected}"


class Stranger(Client):
    """A user whom the policy does not name."""

    def ask(self) -> None:
        os.setgroups([])
        os.setresgid(STRANGER, STRANGER, STRANGER)
        os.setresuid(STRANGER, STRANGER, STRANGER)
        super().ask()

    def one(self) -> tuple[What, str]:
        import slowpath_zygote

        time.sleep(0.02)
        try:
            with slowpath_zygote.spawn(self.place, ["job", "exit", "0"]):
                return What.STRANGER_SERVED, ""
        except slowpath_zygote.ZygoteError as error:
            if f"user {STRANGER} may not ask" in str(error):
                return What.STRANGER_REFUSED, ""
            return of_error(str(error)), str(error)


class Hostile(Client):
    """One that keeps to no rule."""

    def __init__(self, number: int, place: Path, pipe: int, seed: int, request: bytes) -> None:
        super().__init__(number, place, pipe, seed)
        self.request = request

    def connected(self) -> socket.socket:
        """A connection of its own."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        made.settimeout(90)
        made.connect(self.place)
        return made

    def one(self) -> tuple[What, str]:
        time.sleep(self.random.uniform(0, 0.02))
        kinds: list[Callable[[socket.socket], bool]] = [
            self.noise, self.mutant, self.too_long, self.too_many, self.flight, self.twice, self.silence,
        ]  # fmt: skip
        kind = self.random.choices(kinds, (20, 50, 5, 5, 10, 9, 1))[0]
        try:
            with self.connected() as to:
                wants = kind(to)
                return (What.HOSTILE_ANSWERED if wants and to.recv(1 << 17) else What.HOSTILE_CLOSED), ""
        except TimeoutError:
            return What.UNANSWERED, kind.__name__
        except OSError:
            return What.HOSTILE_CLOSED, ""

    def send(self, to: socket.socket, data: bytes, count: int = 0) -> None:
        """A packet with so many descriptors."""
        given = array.array("i", [self.pipe] * count)
        to.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, given)] if count else [])

    def noise(self, to: socket.socket) -> bool:
        """Bytes at random."""
        self.send(to, self.random.randbytes(self.random.randrange(1, 4096)), self.random.randrange(3))
        return True

    def mutant(self, to: socket.socket) -> bool:
        """A request in which some bytes are others."""
        data = bytearray(self.request)
        for _ in range(self.random.randrange(1, 4)):
            data[self.random.randrange(len(data))] = self.random.randrange(256)
        self.send(to, bytes(data), self.random.randrange(2))
        return True

    def too_long(self, to: socket.socket) -> bool:
        """More than a message holds."""
        self.send(to, bytes([0xC0]) * ((128 << 10) + self.random.randrange(1, 4096)))
        return True

    def too_many(self, to: socket.socket) -> bool:
        """As many descriptors as the kernel takes."""
        self.send(to, self.request, 253)
        return True

    def flight(self, to: socket.socket) -> bool:
        """It asks, and is gone."""
        self.send(to, self.request)
        return False

    def twice(self, to: socket.socket) -> bool:
        """It has a child and asks for one more."""
        self.send(to, self.request)
        to.recv(1 << 17)
        self.send(to, self.request)
        return True

    def silence(self, to: socket.socket) -> bool:
        """It says nothing, and is sent away after 5 s."""
        return True


def recorded_request(place: Path) -> bytes:
    """The bytes of a request, from the library to a socket of this run's own."""
    import slowpath_zygote

    path = place / "recorded"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen(1)
        if (child := os.fork()) == 0:
            try:
                slowpath_zygote.spawn(str(path), ["job", "exit", "0"])
            except slowpath_zygote.ZygoteError:
                pass
            os._exit(0)
        to, _ = listener.accept()
        with to:
            request = to.recv(1 << 17)
    os.waitpid(child, 0)
    path.unlink()
    return request
