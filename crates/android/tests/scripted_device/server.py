"""A server of adb with one scripted device behind it, which speaks the real wire protocol.

Run as `server.py STATE [FAILURE]`; prints its port, serves until its standard input ends. STATE is `healthy`, `broken` (story 1: compiled
with a profile, 0640) or `partly` (odex 0640, vdex 0644); a repair changes it. FAILURE is one of `FAILURES`.

Protocol: docs/dev/{overview,services,sync}.md of packages/modules/adb. Written from these documents, with nothing of slowpath's parsers.
"""

import socket
import socketserver
import struct
import sys
import threading

from device import Device

SERIAL = "SCRIPTED1"
VERSION = 41
FEATURES = "shell_v2,cmd"
STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN = 0, 1, 2, 3, 4
END = "; r=$?; echo; echo slowpath-end:$r"

FAILURES = (
    *("offline", "unauthorized", "none", "two", "hang", "half", "gone", "denied", "no-dexopt", "no-compile"),
    *("gone-late", "no-perfetto", "no-activity", "no-pull", "cut-trace"),
    # Of vdex files: `grows` sends more than it listed, `directory` says that each is a directory, with a file in it.
    *("grows", "directory"),
)
LATE = 22
GROWN = b"x" * ((16 << 20) + 1)


class Client(socketserver.BaseRequestHandler):
    """One connection of a client."""

    device: Device
    failure: str
    commands = 0

    def handle(self) -> None:
        """Requests of the host, until one takes the connection over."""
        self.request.settimeout(60)
        try:
            while (request := self.read_request()) is not None:
                if not self.of_host(request):
                    return
        except (OSError, EOFError):
            return

    def read_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.request.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def read_request(self) -> str | None:
        try:
            length = int(self.read_exactly(4), 16)
        except EOFError:
            return None
        return self.read_exactly(length).decode()

    def okay(self, text: str | None = None) -> None:
        self.request.sendall(b"OKAY" + (b"" if text is None else f"{len(text):04x}{text}".encode()))

    def fail(self, why: str) -> None:
        self.request.sendall(f"FAIL{len(why):04x}{why}".encode())

    def state(self) -> str:
        return self.failure if self.failure in ("offline", "unauthorized") else "device"

    def of_host(self, request: str) -> bool:
        """One request; whether the connection goes on."""
        if request == "host:version":
            self.okay(f"{VERSION:04x}")
        elif request in ("host:devices-l", "host:devices"):
            rows = [] if self.failure == "none" else [SERIAL]
            rows += ["SCRIPTED2"] if self.failure == "two" else []
            self.okay("".join(f"{row:<22} {self.state()} product:scripted model:Scripted transport_id:1\n" for row in rows))
        elif request.endswith(":features"):
            self.okay(FEATURES)
        elif request.startswith(("host:transport", "host:tport")):
            return self.of_transport(request)
        else:
            self.fail(f"unknown host service {request}")
        return False

    def of_transport(self, request: str) -> bool:
        wanted = request.rsplit(":", 1)[1]
        Client.commands += 1
        if (self.failure == "gone" and Client.commands > 4) or (self.failure == "gone-late" and Client.commands > LATE):
            self.fail(f"device '{SERIAL}' not found")
            return False
        if wanted not in (SERIAL, "any", "transport-any"):
            self.fail(f"device '{wanted}' not found")
            return False
        if self.state() != "device":
            self.fail(f"device {self.state()}")
            return False
        self.okay()
        if request.startswith("host:tport"):
            self.request.sendall(struct.pack("<Q", 1))
        service = self.read_request() or ""
        if service.startswith("shell,v2"):
            self.shell(service.split(":", 1)[1])
        elif service == "sync:":
            self.sync()
        else:
            self.fail(f"unknown service {service}")
        return False

    def packet(self, kind: int, data: bytes) -> None:
        for start in range(0, len(data), 4096):
            part = data[start : start + 4096]
            self.request.sendall(struct.pack("<BI", kind, len(part)) + part)

    def shell(self, script: str) -> None:
        """Shell protocol v2: packets of a byte for the stream, four bytes of length, and the data."""
        self.okay()
        command = script.removesuffix(END)
        if self.failure == "hang" and command.startswith("dumpsys package dexopt"):
            threading.Event().wait(30)
            return
        stdin = self.standard_input() if command.startswith("perfetto ") else b""
        stdout, stderr, status = self.device.run(command, self.failure, stdin)
        if script.endswith(END):
            stdout += f"\nslowpath-end:{status}\n".encode()
            status = 0
        if self.failure == "half" and command.startswith("dumpsys package dexopt"):
            self.packet(STDOUT, stdout[: len(stdout) // 2])
            return
        self.packet(STDOUT, stdout)
        self.packet(STDERR, stderr)
        self.packet(EXIT, bytes([status]))

    def standard_input(self) -> bytes:
        """What the client sends until it says that nothing follows."""
        data = b""
        while True:
            kind, length = struct.unpack("<BI", self.read_exactly(5))
            part = self.read_exactly(length)
            if kind == CLOSE_STDIN:
                return data
            data += part if kind == STDIN else b""

    def sync(self) -> None:
        """File sync: four letters, four bytes of length, and a path."""
        self.okay()
        while True:
            kind, length = struct.unpack("<4sI", self.read_exactly(8))
            path = self.read_exactly(length).decode() if kind != b"QUIT" else ""
            if kind in (b"STAT", b"LST2", b"STA2"):
                file = self.device.status(path)
                mode, size = (0, 0) if file is None else (file.st_mode(), len(file.data))
                mode = 0o040755 if self.failure == "directory" and path.endswith(".vdex") else mode
                self.request.sendall(struct.pack("<4sIII", b"STAT", mode, size, 0))
            elif kind == b"LIST":
                name = b"planted"
                self.request.sendall(struct.pack("<4sIIII", b"DENT", 0o100644, 4, 0, len(name)) + name)
                self.request.sendall(struct.pack("<4sIIII", b"DONE", 0, 0, 0, 0))
            elif kind == b"RECV":
                file = self.device.status(path.removesuffix("/planted"))
                if file is None or not self.device.may(path.removesuffix("/planted"), 4):
                    why = b"open failed: Permission denied" if file else b"open failed: No such file or directory"
                    self.request.sendall(struct.pack("<4sI", b"FAIL", len(why)) + why)
                    continue
                data = GROWN if self.failure == "grows" and path.endswith(".vdex") else file.data
                for start in range(0, len(data), 65536):
                    part = data[start : start + 65536]
                    self.request.sendall(struct.pack("<4sI", b"DATA", len(part)) + part)
                self.request.sendall(struct.pack("<4sI", b"DONE", 0))
            else:
                return


class Server(socketserver.ThreadingTCPServer):
    """A thread for each connection."""

    daemon_threads = True
    allow_reuse_address = True
    address_family = socket.AF_INET


def main() -> None:
    """Serves until standard input ends."""
    Client.failure = sys.argv[2] if len(sys.argv) > 2 else ""
    assert Client.failure in ("", *FAILURES), Client.failure
    Client.device = Device(sys.argv[1])
    with Server(("127.0.0.1", 0), Client) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_address[1], flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
