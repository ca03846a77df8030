//! What the run-time linker has to do for an ELF file, counted from its tables.
//!
//! Owns reading them piece by piece, so that a file of any size costs little memory. A file is foreign: what is broken is left out,
//! and what claims to be larger than any program has is counted in part.

use object::read::elf::{FileHeader, SectionHeader};
use object::{Endian, Endianness, elf};
use slowpath_tables::{Bytes, FileRelocations};
use std::fs;
use std::os::unix::fs::FileExt;

/// Entries of a table that are counted. The largest program known here, a debug build of Chromium, has 1.2 million.
const MOST_ENTRIES: u64 = 1 << 22;
/// Entries that are read at once.
const AT_ONCE: u64 = 1 << 13;
/// Bytes of an entry (`Elf64_Rela`) and of a symbol (`Elf64_Sym`).
const ENTRY: u64 = 24;
/// Bytes of an entry of the dynamic section (`Elf64_Dyn`).
const DYNAMIC_ENTRY: u64 = 16;
/// Entries of a dynamic section that are looked at; each library has one.
const MOST_DYNAMIC: u64 = 1 << 14;
/// Tables of relocations that are looked at: a file has two or three.
const MOST_TABLES: usize = 8;

// Values of <elf.h>.
const DT_NEEDED: u64 = 1;
const DT_SONAME: u64 = 14;
const DT_SYMBOLIC: u64 = 16;
const DT_JMPREL: u64 = 23;
const DT_BIND_NOW: u64 = 24;
const DT_FLAGS: u64 = 30;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_SYMBOLIC: u64 = 2;
const DF_BIND_NOW: u64 = 8;
const DF_1_NOW: u64 = 1;

type Header = elf::FileHeader64<Endianness>;
type Sections<'a> = &'a [elf::SectionHeader64<Endianness>];

/// Calls `each` with every record of `size` bytes of a range of the file, as far as it can be read.
fn records(file: &fs::File, offset: u64, length: u64, size: u64, mut each: impl FnMut(&[u8])) {
    let (mut at, end) = (offset, offset.saturating_add(length.min(MOST_ENTRIES * ENTRY)));
    let mut buffer = vec![0u8; (AT_ONCE * ENTRY) as usize];
    while at < end {
        let piece = (end - at).min(AT_ONCE * ENTRY / size * size);
        let piece = &mut buffer[..piece as usize];
        if file.read_exact_at(piece, at).is_err() {
            return;
        }
        piece.chunks_exact(size as usize).for_each(&mut each);
        at = at.saturating_add(piece.len() as u64);
    }
}

fn word(bytes: &[u8], at: usize, endian: Endianness) -> u64 {
    let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, |bytes| endian.read_u64(bytes))
}

/// Counts them. Device and inode are left open; `None` for a file that is not linked dynamically.
pub(super) fn of_file(
    file: &fs::File,
    header: &Header,
    endian: Endianness,
    sections: Sections<'_>,
) -> Option<FileRelocations> {
    let loaded = || sections.iter().filter(|one| one.sh_flags(endian) & elf::SHF_ALLOC != elf::SectionFlags(0));
    let of_type = |wanted: elf::SectionType| loaded().filter(move |one| one.sh_type(endian) == wanted);
    let dynamic = of_type(elf::SHT_DYNAMIC).next()?;
    let mut found = FileRelocations {
        dev: 0,
        ino: 0,
        program: false,
        fixed: header.e_type(endian) == elf::ET_EXEC,
        relative: 0,
        packed: 0,
        symbolic: 0,
        calls: 0,
        own: 0,
        table_bytes: Bytes(0),
        libraries: 0,
        bind_now: false,
        symbolic_binding: false,
        gnu_hash: false,
    };
    let (mut calls_at, mut is_library) = (None, false);
    let length = dynamic.sh_size(endian).min(MOST_DYNAMIC * DYNAMIC_ENTRY);
    records(file, dynamic.sh_offset(endian), length, DYNAMIC_ENTRY, |entry| {
        let (tag, value) = (word(entry, 0, endian), word(entry, 8, endian));
        match tag {
            DT_NEEDED => found.libraries = found.libraries.saturating_add(1),
            DT_SONAME => is_library = true,
            DT_SYMBOLIC => found.symbolic_binding = true,
            DT_JMPREL => calls_at = Some(value),
            DT_BIND_NOW => found.bind_now = true,
            DT_FLAGS => {
                found.bind_now |= value & DF_BIND_NOW != 0;
                found.symbolic_binding |= value & DF_SYMBOLIC != 0;
            }
            DT_FLAGS_1 => found.bind_now |= value & DF_1_NOW != 0,
            DT_GNU_HASH => found.gnu_hash = true,
            _ => {}
        }
    });
    // The C library names an interpreter too, to be started by hand.
    found.program = !is_library && has_interpreter(file, header, endian);
    let defined = defined_symbols(file, of_type(elf::SHT_DYNSYM).next(), endian);
    for table in of_type(elf::SHT_RELA).take(MOST_TABLES) {
        let (offset, length) = (table.sh_offset(endian), table.sh_size(endian));
        found.table_bytes += Bytes(length);
        let is_of_calls = calls_at == Some(table.sh_addr(endian));
        records(file, offset, length, ENTRY, |entry| {
            let information = word(entry, 8, endian);
            let (symbol, kind) = (information >> 32, information & 0xffff_ffff);
            if is_of_calls {
                found.calls += 1;
            } else if is_relative(header, endian, kind, symbol) {
                found.relative += 1;
                return;
            } else {
                found.symbolic += 1;
            }
            let is_own = usize::try_from(symbol).ok().and_then(|symbol| defined.get(symbol)).copied();
            found.own += u64::from(symbol != 0 && is_own == Some(true));
        });
    }
    for table in of_type(elf::SHT_RELR).take(MOST_TABLES) {
        found.table_bytes += Bytes(table.sh_size(endian));
        // An even word is an address, an odd one a bitmap of 63 words (generic-abi, "SHT_RELR", 2017).
        records(file, table.sh_offset(endian), table.sh_size(endian), 8, |entry| {
            let entry = word(entry, 0, endian);
            let addresses = if entry & 1 == 0 { 1 } else { u64::from(entry.count_ones()) - 1 };
            found.packed = found.packed.saturating_add(addresses);
        });
    }
    Some(found)
}

/// Types of the psABIs of x86-64, AArch64 and RISC-V; elsewhere what has no symbol.
fn is_relative(header: &Header, endian: Endianness, kind: u64, symbol: u64) -> bool {
    match header.e_machine(endian) {
        elf::EM_X86_64 => kind == 8,
        elf::EM_AARCH64 => kind == 1027,
        elf::EM_RISCV => kind == 3,
        _ => symbol == 0,
    }
}

/// Whether a program header names a run-time linker.
fn has_interpreter(file: &fs::File, header: &Header, endian: Endianness) -> bool {
    const PT_INTERP: u32 = 3;
    let size = u64::from(header.e_phentsize(endian));
    let count = u64::from(header.e_phnum(endian)).min(256);
    let mut found = false;
    if size == 56 {
        records(file, header.e_phoff(endian), count * size, size, |entry| {
            let kind = entry.get(..4).and_then(|bytes| bytes.try_into().ok()).map(|bytes| endian.read_u32(bytes));
            found |= kind == Some(PT_INTERP);
        });
    }
    found
}

/// Of each dynamic symbol, whether the file defines it.
fn defined_symbols(file: &fs::File, table: Option<&elf::SectionHeader64<Endianness>>, endian: Endianness) -> Vec<bool> {
    let mut defined = Vec::new();
    if let Some(table) = table {
        records(file, table.sh_offset(endian), table.sh_size(endian), ENTRY, |symbol| {
            // `st_shndx` stands behind name, information and visibility; 0 is SHN_UNDEF in either order of bytes.
            defined.push(symbol.get(6..8).is_some_and(|section| section != [0, 0]));
        });
    }
    defined
}

// What is read is what compilers of this architecture make.
#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use crate::examine::elf_facts;
    use slowpath_tables::FileRelocations;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    fn compiled(directory: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let (input, output) = (directory.join("source.c"), directory.join(name));
        std::fs::write(&input, source).unwrap();
        let status = Command::new("cc").arg(&input).args(flags).arg("-o").arg(&output).status().unwrap();
        assert!(status.success(), "cc {flags:?}");
        output
    }

    fn facts(path: &Path) -> Option<FileRelocations> {
        elf_facts(&std::fs::File::open(path).unwrap(), 1, 2).unwrap().relocations
    }

    /// Words of `readelf -rW` that name a type, and how often.
    fn by_readelf(path: &Path, kind: &str) -> u64 {
        let output = Command::new("readelf").args(["-rW"]).arg(path).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().filter(|line| line.split_whitespace().any(|word| word == kind)).count() as u64
    }

    const SOURCE: &str = "int a, b; int *p[1000] = {[0 ... 499] = &a, [500 ... 999] = &b}; int puts(const char *);\n\
                          int f(void) { return 1; } int (*own)(void) = f; int main(void) { return puts(\"x\") + f(); }";

    #[test]
    fn relocations_are_counted_as_readelf_does_and_flags_are_seen() {
        let directory = tempfile::tempdir().unwrap();
        let made = |name: &str, flags: &[&str]| compiled(directory.path(), name, SOURCE, flags);
        let plain = made("plain", &["-fPIE", "-pie", "-Wl,-z,now"]);
        let found = facts(&plain).unwrap();
        assert!(
            found.relative >= 1001 && found.program && !found.fixed && found.bind_now && found.gnu_hash,
            "{found:?}"
        );
        assert_eq!(found.relative, by_readelf(&plain, "R_X86_64_RELATIVE"), "{found:?}");
        assert_eq!(found.calls, by_readelf(&plain, "R_X86_64_JUMP_SLOT"));
        let symbolic = by_readelf(&plain, "R_X86_64_GLOB_DAT") + by_readelf(&plain, "R_X86_64_64");
        assert_eq!((found.symbolic, found.libraries), (symbolic, 1));

        let packed = facts(&made("packed", &["-fPIE", "-pie", "-Wl,-z,pack-relative-relocs"])).unwrap();
        assert!(packed.packed >= 1001 && packed.relative == 0 && packed.table_bytes < found.table_bytes, "{packed:?}");

        let fixed = facts(&made("fixed", &["-no-pie", "-Wl,-z,lazy"])).unwrap();
        assert!(fixed.fixed && fixed.relative == 0 && !fixed.bind_now, "{fixed:?}");
        assert_eq!(facts(&made("static", &["-static"])), None);

        let library = facts(&made("library.so", &["-shared", "-fPIC"])).unwrap();
        assert!(library.own >= 1001 && !library.program && !library.symbolic_binding, "{library:?}");
        let bound = facts(&made("bound.so", &["-shared", "-fPIC", "-Wl,-Bsymbolic"])).unwrap();
        assert!(bound.symbolic_binding && bound.relative >= 1001 && bound.own < 10, "{bound:?}");
    }
}
