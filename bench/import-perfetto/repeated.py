"""A Perfetto trace repeated with later times, until it is as long as wanted.

Traces may be put behind each other; only times must go on. All times of a trace move by multiples of 2^35 ns (34 s), so that of a
time's bytes only those from the sixth on change: a repetition is a copy of the trace in which two bytes a time are written anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wire import BYTES, fields, read_varint, varint

STEP_BITS = 35
"""Five bytes of a number: those that stay."""
PACKET = 1
SEQUENCE_CLOCKS = range(64, 128)
"""Ids of clocks that count from the time before."""


@dataclass
class Times:
    """Where the times of a trace are, by what is behind their fifth byte and by how many bytes that takes."""

    places: dict[tuple[int, int], list[int]]
    first: int
    last: int

    def add(self, trace: bytes | bytearray, at: int) -> None:
        """The number at this byte is a time."""
        value, end = read_varint(trace, at)
        if end - at <= 5:
            if value:
                raise ValueError(f"byte {at}: a time of {value} ns: the machine had just started")
            return
        self.places.setdefault((value >> STEP_BITS, end - at - 5), []).append(at + 5)

    def add_event(self, trace: bytes | bytearray, at: int) -> None:
        """The number at this byte is the time of an event: the trace spans it."""
        value, _ = read_varint(trace, at)
        self.first, self.last = min(self.first, value), max(self.last, value)
        self.add(trace, at)

    def count(self) -> int:
        """How many there are."""
        return sum(map(len, self.places.values()))


def times_of(trace: bytes | bytearray) -> Times:
    """All times in a trace that move with it: of packets, events of ftrace, and snapshots of clocks."""
    times = Times({}, 1 << 63, 0)
    for tag, _, begin, end in fields(trace, 0, len(trace)):
        if tag != PACKET:
            raise ValueError(f"byte {begin}: no packet")
        stamp, counted = None, False
        for field, kind, at, after in fields(trace, begin, end):
            if field == 8:
                stamp = at
            elif field == 58:
                counted = read_varint(trace, at)[0] in SEQUENCE_CLOCKS
            elif field == 1 and kind == BYTES:
                _bundle(trace, at, after, times)
            elif field == 6 and kind == BYTES:
                _clocks(trace, at, after, times)
            elif field == 50:
                raise ValueError(f"byte {at}: compressed packets: record without compression")
            elif kind == BYTES and field in _COLLECTED:
                for inner, _, place, _ in fields(trace, at, after):
                    if inner == _COLLECTED[field]:
                        times.add(trace, place)
        if stamp is not None and not counted:
            times.add(trace, stamp)
    return times


_COLLECTED = {2: 3, 7: 9, 9: 2}
"""Of a process tree, of statistics of the system and of processes: the field that says until when they were collected."""


def _bundle(trace: bytes | bytearray, begin: int, end: int, times: Times) -> None:
    """Events of ftrace of one CPU."""
    for field, _, at, after in fields(trace, begin, end):
        if field == 2:
            for inner, _, place, _ in fields(trace, at, after):
                if inner == 1:
                    times.add_event(trace, place)
        elif field == 4:
            # Columns: the first time is whole, those behind it are differences.
            for inner, _, place, behind in fields(trace, at, after):
                if inner in (1, 7) and place < behind:
                    times.add_event(trace, place)
        elif field in (7, 9, 10):
            times.add(trace, at)


def _clocks(trace: bytes | bytearray, begin: int, end: int, times: Times) -> None:
    """What several clocks show at one moment."""
    for field, _, at, after in fields(trace, begin, end):
        if field != 1:
            continue
        found = {inner: place for inner, _, place, _ in fields(trace, at, after)}
        if 2 in found and (1 not in found or read_varint(trace, found[1])[0] not in SEQUENCE_CLOCKS):
            times.add(trace, found[2])


def write_repeated(trace: bytes, out: Path, size: int) -> tuple[int, Times]:
    """Writes a trace over and over until the file has this size; how often, and the trace's times."""
    times = times_of(trace)
    span = times.last - times.first
    steps = (max(span, 0) >> STEP_BITS) + 1
    copy, number = bytearray(trace), 0
    with out.open("wb") as file:
        while file.tell() < size:
            for (high, length), places in times.places.items():
                late = varint(high + number * steps)
                if len(late) > length:
                    raise ValueError("times of the repetitions take more bytes than those of the trace")
                late = bytes([*(byte | 0x80 for byte in late), *[0x80] * (length - len(late))])
                late = late[:-1] + bytes([late[-1] & 0x7F])
                for index, byte in enumerate(late):
                    for place in places:
                        copy[place + index] = byte
            file.write(copy)
            number += 1
    return number, times
