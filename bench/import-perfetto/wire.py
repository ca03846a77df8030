"""The wire format of protocol buffers, as much of it as a trace is written and searched with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """A number; negative ones take ten bytes, as those of signed fields do."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag: int, value: int) -> bytes:
    """A field that is a number."""
    return varint(tag << 3 | VARINT) + varint(value)


def text(tag: int, value: bytes) -> bytes:
    """A field that is text, bytes or a message."""
    return varint(tag << 3 | BYTES) + varint(len(value)) + value


def packed(tag: int, values: Sequence[int]) -> bytes:
    """A field of many numbers."""
    return text(tag, b"".join(map(varint, values)))


def read_varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """The number that begins at a byte, and the byte behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data: bytes | bytearray, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message: tag, type, and where the content begins and ends."""
    while begin < end:
        key, at = read_varint(data, begin)
        kind = key & 7
        if kind == VARINT:
            _, begin = read_varint(data, at)
        elif kind == BYTES:
            length, at = read_varint(data, at)
            begin = at + length
        elif kind in (EIGHT_BYTES, FOUR_BYTES):
            begin = at + (8 if kind == EIGHT_BYTES else 4)
        else:
            raise ValueError(f"byte {begin}: no field of a message")
        if begin > end:
            raise ValueError(f"byte {at}: a field that ends behind its message")
        yield key >> 3, kind, at, begin
