//! What the layout of an ELF file is made of: segments, sections, identity, and its functions with their sizes.
//!
//! Owns reading them from the bytes of a file of this machine ([`Binary::of_elf`]). Functions come from `.symtab`, `.dynsym` and the frame
//! descriptions, so a stripped file has them too, without names. Leaves what is done with them to `layout`. The files are foreign:
//! any bytes give a value or an error, in bounded memory and time.

mod descriptions;
mod functions;
pub mod relocations;

use crate::unwind_table::{Image, UnwindTableError};
use object::Endianness;
use object::elf::{
    DT_TEXTREL, ET_EXEC, FileHeader64, NT_GNU_BUILD_ID, PF_W, PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, SHF_ALLOC,
    SHF_EXECINSTR, SHT_NOBITS,
};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};
use std::ops::Range;

/// Sections that are looked at; a file compiled with one section a function has them before it is linked only.
const MAX_SECTIONS: usize = 1 << 16;
/// Segments that are looked at; programs have some twelve, copies of `slowpath layout repack` up to 1,100.
const MAX_SEGMENTS: usize = 1200;
/// Sections do not overlap; a broken file could have all of them at one place.
const MAX_OVERLAP: usize = 16;
/// The longest name of a section that is kept, in bytes.
const MAX_NAME: usize = 256;
/// A build-id has 20 bytes (SHA-1); lld also makes 8 and 16, and any length can be given by hand.
const MAX_BUILD_ID: usize = 64;

/// Part of a file that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinarySegment {
    /// Address that the file states.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file, clipped to what it holds.
    pub size: u64,
    /// Whether it is mapped executable.
    pub executable: bool,
    /// Whether it is mapped writable.
    pub writable: bool,
}

/// A section that is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinarySection {
    /// Its name; foreign text.
    pub name: String,
    /// Address that the file states.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in memory.
    pub size: u64,
    /// Whether it holds instructions.
    pub executable: bool,
    /// Whether the file has no bytes of it (`.bss`).
    pub absent: bool,
}

/// A function, or a part of one that has a symbol or a frame description of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Address that the file states for its first instruction.
    pub address: u64,
    /// Bytes; 0 where neither a symbol nor a description has it.
    pub size: u64,
    /// The name that a linker knows it by, without a version; foreign text. None in a stripped file.
    pub name: Option<String>,
}

/// An ELF file as its layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binary {
    /// Its build-id in hexadecimal digits.
    pub build_id: Option<String>,
    /// Address of the entry point.
    pub entry: u64,
    /// Whether it is mapped at the addresses that it states (`ET_EXEC`).
    pub fixed: bool,
    /// Whether it names a run-time linker.
    pub has_interpreter: bool,
    /// Whether the run-time linker writes into its code (`DT_TEXTREL`).
    pub text_relocations: bool,
    /// What is mapped.
    pub segments: Vec<BinarySegment>,
    /// Sections that are mapped, sorted by address; none where the file has no section headers.
    pub sections: Vec<BinarySection>,
    /// Sorted by address, one for each.
    pub functions: Vec<Function>,
    /// Address of `_dl_debug_state`, which a run-time linker calls when it has mapped or removed an object
    /// (the protocol of `r_debug`, <link.h>).
    pub debug_state: Option<u64>,
}

impl Binary {
    /// Reads a file without its functions, which are most of the work.
    ///
    /// # Errors
    /// As [`Self::of_elf`].
    pub fn without_functions(bytes: &[u8]) -> Result<Self, UnwindTableError> {
        Image::of_this_machine(bytes)?;
        Ok(Self::headers(bytes)?.0)
    }

    fn headers(bytes: &[u8]) -> Result<(Self, &FileHeader64<Endianness>, Endianness), UnwindTableError> {
        let header = FileHeader64::<Endianness>::parse(bytes).map_err(UnwindTableError::NotElf)?;
        let endian = header.endian().map_err(UnwindTableError::NotElf)?;
        let mut binary =
            Self { entry: header.e_entry(endian), fixed: header.e_type(endian) == ET_EXEC, ..Self::default() };
        binary.read_segments(header, endian, bytes)?;
        binary.read_sections(header, endian, bytes);
        Ok((binary, header, endian))
    }

    fn read_segments(
        &mut self,
        header: &FileHeader64<Endianness>,
        endian: Endianness,
        bytes: &[u8],
    ) -> Result<(), UnwindTableError> {
        let length = bytes.len() as u64;
        let segments = header.program_headers(endian, bytes).map_err(UnwindTableError::NotElf)?;
        for segment in segments.iter().take(MAX_SEGMENTS) {
            let kind = segment.p_type(endian);
            if kind == PT_LOAD && segment.p_offset(endian) < length {
                let (offset, flags) = (segment.p_offset(endian), segment.p_flags(endian));
                self.segments.push(BinarySegment {
                    address: segment.p_vaddr(endian),
                    offset,
                    size: segment.p_filesz(endian).min(length - offset),
                    executable: flags.contains(PF_X),
                    writable: flags.contains(PF_W),
                });
            }
            self.has_interpreter |= kind == PT_INTERP;
            if kind == PT_DYNAMIC
                && let Ok(Some(entries)) = segment.dynamic(endian, bytes)
            {
                self.text_relocations |= entries.iter().any(|entry| entry.d_tag(endian) == DT_TEXTREL);
            }
            if self.build_id.is_none()
                && let Ok(Some(mut notes)) = segment.notes(endian, bytes)
            {
                while let Ok(Some(note)) = notes.next() {
                    if note.name() == b"GNU" && note.n_type(endian) == NT_GNU_BUILD_ID {
                        let id = note.desc().iter().take(MAX_BUILD_ID);
                        self.build_id = Some(id.map(|byte| format!("{byte:02x}")).collect());
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Section headers are not needed to run a program, so broken ones are as good as none.
    fn read_sections(&mut self, header: &FileHeader64<Endianness>, endian: Endianness, bytes: &[u8]) {
        let Ok(sections) = header.sections(endian, bytes) else { return };
        for section in sections.iter().take(MAX_SECTIONS) {
            let flags = section.sh_flags(endian);
            if !flags.contains(SHF_ALLOC) || section.sh_size(endian) == 0 {
                continue;
            }
            let name = sections.section_name(endian, section).unwrap_or_default();
            self.sections.push(BinarySection {
                name: String::from_utf8_lossy(&name[..name.len().min(MAX_NAME)]).into_owned(),
                address: section.sh_addr(endian),
                offset: section.sh_offset(endian),
                size: section.sh_size(endian),
                executable: flags.contains(SHF_EXECINSTR),
                absent: section.sh_type(endian) == SHT_NOBITS,
            });
        }
        self.sections.sort_by_key(|section| (section.address, section.size));
    }

    /// The section in which an address stands.
    pub fn section_of(&self, address: u64) -> Option<&BinarySection> {
        let behind = self.sections.partition_point(|section| section.address <= address);
        let mut before = self.sections[..behind].iter().rev().take(MAX_OVERLAP);
        before.find(|section| address - section.address < section.size)
    }

    /// The executable segment in which an address stands.
    pub fn code_at(&self, address: u64) -> Option<&BinarySegment> {
        let mut code = self.segments.iter().filter(|segment| segment.executable);
        code.find(|segment| address.checked_sub(segment.address).is_some_and(|at| at < segment.size))
    }

    /// The bytes of `range` (addresses) in the file, where one executable segment has all of them.
    pub fn code<'a>(&self, bytes: &'a [u8], range: Range<u64>) -> Option<&'a [u8]> {
        let segment = self.code_at(range.start)?;
        let from = segment.offset.checked_add(range.start - segment.address)?;
        let to = from.checked_add(range.end.checked_sub(range.start)?)?;
        if to > segment.offset.checked_add(segment.size)? {
            return None;
        }
        bytes.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
    }

    /// Offset in the file of an address that it states.
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        let holds = |segment: &&BinarySegment| address.checked_sub(segment.address).is_some_and(|at| at < segment.size);
        let segment = self.segments.iter().find(holds)?;
        segment.offset.checked_add(address - segment.address)
    }
}
