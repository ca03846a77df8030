//! The table about what the run-time linker has to do for a file.

use crate::declare::table;
use crate::units::{Bytes, FileKey};

table! {
    /// What the run-time linker has to do for an ELF file: its relocations, counted from its tables when the recording ended. Files
    /// without a dynamic section (static programs) and without section headers have no row.
    FileRelocations = "relocations" {
        /// Device.
        dev: u64,
        /// Inode.
        ino: u64,
        /// True for a program: it names a run-time linker, and has no name as a library (`DT_SONAME`).
        program: bool,
        /// True where it is mapped at the addresses that it states (`ET_EXEC`), which needs no base added.
        fixed: bool,
        /// Relocations that add the base address (`R_*_RELATIVE`), each with an entry of 24 bytes.
        relative: u64,
        /// Addresses of the packed table (`DT_RELR`), which get the base address too.
        packed: u64,
        /// Other relocations of data: mostly addresses of symbols, each of which is looked up.
        symbolic: u64,
        /// Relocations of calls (`DT_JMPREL`), looked up at the first call, or before main where `bind_now` is true.
        calls: u64,
        /// Those of `symbolic` and `calls` whose symbol the file itself defines: another object could replace it.
        own: u64,
        /// Bytes of all these tables.
        table_bytes: Bytes,
        /// Libraries that it names (`DT_NEEDED`).
        libraries: u32,
        /// True where calls are bound before main (`-z now`).
        bind_now: bool,
        /// True where its own symbols are looked up in itself first (`-Bsymbolic`).
        symbolic_binding: bool,
        /// True with `DT_GNU_HASH`, which finds most of what an object does not define without reading names.
        gnu_hash: bool,
    }
}

impl FileRelocations {
    /// The file this row is about.
    pub fn file(&self) -> FileKey {
        FileKey { dev: self.dev, ino: self.ino }
    }
}
