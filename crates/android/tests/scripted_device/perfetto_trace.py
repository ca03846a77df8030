"""A small Perfetto trace of one launch, written from the numbers of Perfetto's message definitions and nothing of slowpath's.

An app process is asked for, made and launched; a renderer follows, which verifies classes for as long as it is told.
"""

MS = 1_000_000
SYSTEM, ZYGOTE, APP, RENDERER = 100, 50, 900, 950
ISOLATED = 99_012


def varint(number: int) -> bytes:
    """A number of the wire format."""
    out = b""
    while True:
        number, low = number >> 7, number & 0x7F
        out += bytes([low | (0x80 if number else 0)])
        if not number:
            return out


def field(tag: int, value: int | bytes | str) -> bytes:
    """A field: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(tag << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(tag << 3 | 2) + varint(len(data)) + data


class Trace:
    """Packets under way."""

    def __init__(self) -> None:
        self.packets = b""
        self.events = b""

    def packet(self, body: bytes) -> None:
        self.packets += field(1, body)

    def processes(self, rows: list[tuple[int, str, int]]) -> None:
        """`ProcessTree`: pid, command line, uid."""
        self.packet(field(2, b"".join(field(1, field(1, pid) + field(3, name) + field(5, uid)) for pid, name, uid in rows)))

    def event(self, ts: int, tid: int, tag: int, body: bytes) -> None:
        self.events += field(2, field(1, ts) + field(2, tid) + field(tag, body))

    def atrace(self, ts: int, tid: int, text: str) -> None:
        self.event(ts, tid, 3, field(2, text + "\n"))

    def slice(self, begin: int, end: int, tid: int, name: str) -> None:
        self.atrace(begin, tid, f"B|{tid}|{name}")
        self.atrace(end, tid, f"E|{tid}")

    def switch(self, ts: int, prev: int, state: int, following: int) -> None:
        body = field(2, prev) + field(4, state) + field(6, following)
        self.event(ts, prev, 4, body)

    def made(self, ts: int, parent: int, pid: int) -> None:
        self.event(ts, parent, 235, field(1, pid) + field(2, "zygote64"))

    def finish(self) -> bytes:
        self.packet(field(1, field(1, 0) + self.events))
        return self.packets


def launch(package: str, verify_ms: int, first_frame_ms: int = 400) -> bytes:
    """The trace of a cold launch whose renderer verifies classes for so long."""
    trace = Trace()
    renderer = f"{package}:sandboxed_process0:org.chromium.content.app.SandboxedProcessService0:0"
    trace.packet(field(45, field(5, 33)))
    trace.processes([(1, "init", 0), (ZYGOTE, "zygote64", 0), (SYSTEM, "system_server", 1000)])
    at = 1000 * MS
    frame = at + first_frame_ms * MS
    trace.atrace(at, SYSTEM, f"S|{SYSTEM}|launchingActivity#7|7")
    trace.slice(at + 10 * MS, at + 20 * MS, SYSTEM, f"Start proc: {package}")
    trace.made(at + 15 * MS, ZYGOTE, APP)
    trace.switch(at + 16 * MS, 0, 0, APP)
    trace.slice(at + 30 * MS, at + 130 * MS, APP, "bindApplication")
    trace.slice(at + 140 * MS, at + 200 * MS, APP, "performCreate:org.chromium.Main")
    trace.slice(at + 200 * MS, at + 210 * MS, APP, "activityStart")
    trace.slice(at + 210 * MS, at + 230 * MS, APP, "activityResume")
    trace.switch(at + 240 * MS, APP, 2, 0)
    trace.event(at + 260 * MS, 0, 18, field(1, APP) + field(3, 1))
    trace.switch(at + 260 * MS, 0, 0, APP)
    trace.atrace(frame, SYSTEM, f"F|{SYSTEM}|launchingActivity#7|7")
    trace.atrace(frame + MS, SYSTEM, f"I|{SYSTEM}|launchingActivity#7:completed-cold:{package}")
    trace.slice(frame + 10 * MS, frame + 12 * MS, SYSTEM, f"Start proc: {renderer}")
    trace.made(frame + 11 * MS, ZYGOTE, RENDERER)
    trace.atrace(frame + 20 * MS, RENDERER, f"B|{RENDERER}|bindApplication")
    if verify_ms:
        trace.slice(frame + 21 * MS, frame + (21 + verify_ms) * MS, RENDERER, "VerifyClass org.chromium.Renderer")
    end = frame + (30 + verify_ms) * MS
    trace.atrace(end, RENDERER, f"E|{RENDERER}")
    service = "token=android.os.BinderProxy@1 className=org.chromium.content.app.SandboxedProcessService0"
    trace.slice(end, end + 5 * MS, RENDERER, f"serviceCreate: CreateServiceData{{{service} packageName={package} intent=null}}")
    trace.atrace(end + 50 * MS, APP, f"B|{APP}|reportFullyDrawn() for {{{package}}}")
    body = trace.finish()
    # Perfetto lists a process when it has seen it: behind its first events.
    later = Trace()
    later.packet(field(8, end + 60 * MS) + field(2, tree([(APP, package, 10123), (RENDERER, renderer, ISOLATED)])))
    return body + later.packets


def tree(rows: list[tuple[int, str, int]]) -> bytes:
    """`ProcessTree` alone."""
    return b"".join(field(1, field(1, pid) + field(3, name) + field(5, uid)) for pid, name, uid in rows)
