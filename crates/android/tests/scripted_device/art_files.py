"""Small files of ART, written from the format's own documentation: Android 12 and 13 (oat 225, vdex 027), and a dm file."""

import io
import struct
import zipfile

PAGE = 4096


def oat_header(status: str, reason: str) -> bytes:
    """runtime/oat.h of Android 13: magic, version, fourteen numbers, size of the store, the store."""
    pairs = {"compilation-reason": reason, "compiler-filter": status, "classpath": "PCL[]", "debuggable": "false"}
    store = b"".join(f"{key}\0{value}\0".encode() for key, value in pairs.items())
    numbers = [0x1234, 2, 0, 2, 0x2000, 0, 0x3000, *[0] * 7]
    return b"oat\n225\0" + struct.pack("<14I", *numbers) + struct.pack("<I", len(store)) + store


def odex(status: str, reason: str) -> bytes:
    """An ELF file of arm64 with `.rodata` at its second page."""
    data = oat_header(status, reason)
    names = b"\0.rodata\0.shstrtab\0"
    names_at = PAGE + len(data)
    sections_at = (names_at + len(names) + 7) // 8 * 8
    ident = b"\x7fELF" + bytes([2, 1, 1, 3]) + bytes(8)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, 183, 1, 0, 0, sections_at, 0, 64, 56, 0, 64, 3, 2)
    section = "<IIQQQQIIQQ"
    rows = [
        struct.pack(section, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        struct.pack(section, 1, 1, 2, PAGE, PAGE, len(data), 0, 0, PAGE, 0),
        struct.pack(section, 9, 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
    ]
    body = (header.ljust(PAGE, b"\0") + data + names).ljust(sections_at, b"\0")
    return body + b"".join(rows)


def vdex() -> bytes:
    """runtime/vdex_file.h of Android 12 and later: checksums of two DEX files, no DEX."""
    rows = [(0, 60, 8), (1, 0, 0), (2, 68, 4), (3, 72, 0)]
    return b"vdex027\0" + struct.pack("<I", len(rows)) + b"".join(struct.pack("<3I", *row) for row in rows) + bytes(12)


def dm() -> bytes:
    """A dm file with a profile (015, one empty section)."""
    profile = b"pro\x00015\x00" + struct.pack("<I", 1) + struct.pack("<4I", 0, 28, 0, 0)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("primary.prof", profile)
        archive.writestr("primary.vdex", vdex())
    return whole.getvalue()
