//! A program whose relocations are done in its file: what `slowpath layout repack --prelink` makes.
//!
//! A position-independent program is moved to one address, as if it had been linked with `-no-pie`: what the run-time linker would write
//! into pages at every start (`R_X86_64_RELATIVE` and RELR) stands in the file then, and the pages are shared with the page cache until the
//! program itself writes them. Its code is the same; relocations that need other files stay.
//!
//! Owns the bytes of the new file. Only numbers change, and no place: what is loaded, and where from, is as it was. The file is foreign:
//! any bytes give a value or an error. Sources: System V ABI for x86-64, chapter 5; elf/dynamic-link.h and sysdeps/x86_64/dl-machine.h of
//! glibc; fs/binfmt_elf.c.

use super::{RepackError, loaded, parsed};
use object::U64;
use object::elf::{
    DF_1_PIE, DT_FINI, DT_FINI_ARRAY, DT_FLAGS_1, DT_GNU_HASH, DT_HASH, DT_INIT, DT_INIT_ARRAY, DT_JMPREL, DT_NULL,
    DT_PLTGOT, DT_PLTRELSZ, DT_PREINIT_ARRAY, DT_RELA, DT_RELACOUNT, DT_RELASZ, DT_RELR, DT_RELRSZ, DT_STRTAB,
    DT_SYMTAB, DT_TEXTREL, DT_TLSDESC_GOT, DT_TLSDESC_PLT, DT_VERDEF, DT_VERNEED, DT_VERSYM, DynamicTag, ET_DYN,
    ET_EXEC, PT_DYNAMIC, PT_GNU_STACK, PT_INTERP, R_X86_64_IRELATIVE, R_X86_64_JUMP_SLOT, R_X86_64_RELATIVE, SHF_ALLOC,
    SHN_ABS, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STT_TLS,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use slowpath_tables::PAGE_SIZE;
use std::collections::HashMap;
use std::ops::Range;

/// Where a program is moved, at least: where linkers put programs of a fixed address.
const ADDRESS: u64 = 0x40_0000;
/// A program is aligned so much, and ends so high, at most: both are far from what any has.
const MOST_ALIGN: u64 = 1 << 30;
const MOST_SIZE: u64 = 1 << 40;
/// `DT_X86_64_PLT` (psABI).
const DT_X86_64_PLT: DynamicTag = DynamicTag(0x7000_0000);
/// Bytes of an entry of the dynamic section, of a relocation, and of a symbol.
const DYN: u64 = 16;
const RELA: u64 = 24;
const SYM: u64 = 24;
/// Words that follow in one bitmap of RELR.
const BITMAP: u64 = 63;

/// Entries of the dynamic section that are addresses.
const ADDRESSES: [DynamicTag; 19] = [
    DT_PLTGOT,
    DT_HASH,
    DT_STRTAB,
    DT_SYMTAB,
    DT_RELA,
    DT_INIT,
    DT_FINI,
    DT_JMPREL,
    DT_INIT_ARRAY,
    DT_FINI_ARRAY,
    DT_PREINIT_ARRAY,
    DT_GNU_HASH,
    DT_TLSDESC_PLT,
    DT_TLSDESC_GOT,
    DT_VERSYM,
    DT_VERDEF,
    DT_VERNEED,
    DT_RELR,
    DT_X86_64_PLT,
];

/// A prelinked program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prelinked {
    /// The new file, as long as the old one.
    pub bytes: Vec<u8>,
    /// By how much its addresses are higher.
    pub moved_by: u64,
    /// Relocations that are done.
    pub relocations: u64,
    /// Pages of memory that these would have written.
    pub pages: u64,
}

/// The file, and where in it addresses are.
struct Image {
    bytes: Vec<u8>,
    /// Address, place in the file and length of what is loaded, in order.
    loaded: Vec<(u64, u64, u64)>,
}

impl Image {
    /// The place of `length` bytes at an address.
    fn place(&self, address: u64, length: u64, what: &'static str) -> Result<usize, RepackError> {
        let after = self.loaded.partition_point(|one| one.0 <= address);
        let found = after.checked_sub(1).map(|number| self.loaded[number]).and_then(|(from, place, size)| {
            let within = address - from;
            let end = within.checked_add(length)?;
            (end <= size).then_some(place + within)
        });
        found.map(|place| place as usize).ok_or(RepackError::Odd { what })
    }

    fn word(&self, place: usize) -> u64 {
        let bytes = self.bytes.get(place..place + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    }

    fn put(&mut self, place: usize, value: u64) {
        if let Some(bytes) = self.bytes.get_mut(place..place + 8) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }

    fn add(&mut self, place: usize, by: u64) {
        self.put(place, self.word(place).wrapping_add(by));
    }
}

/// Moves a program to one address and does what relocations need no other file.
///
/// # Errors
/// [`RepackError`].
pub fn prelink(file: &[u8]) -> Result<Prelinked, RepackError> {
    let odd = |what| RepackError::Odd { what };
    let (header, endian, headers) = parsed(file)?;
    let sections = header.section_headers(endian, file).map_err(RepackError::NotElf)?;
    let is_program = headers.iter().any(|one| one.p_type(endian) == PT_INTERP);
    if header.e_type(endian) != ET_DYN || !is_program {
        return Err(RepackError::NotPie);
    }
    let segments = loaded(headers, endian, file.len() as u64)?;
    let align = segments.iter().map(|one| one.header.p_align(endian)).fold(PAGE_SIZE, u64::max);
    let end = segments.last().map_or(0, |one| one.header.p_vaddr(endian) + one.header.p_memsz(endian));
    if align > MOST_ALIGN || !align.is_power_of_two() || end > MOST_SIZE {
        return Err(odd("segments"));
    }
    let loaded = segments.iter().map(|one| (one.header.p_vaddr(endian), one.offset, one.size)).collect();
    let by = ADDRESS.next_multiple_of(align);
    let mut image = Image { bytes: file.to_vec(), loaded };

    let dynamic = headers.iter().find(|one| one.p_type(endian) == PT_DYNAMIC).ok_or(RepackError::NotPie)?;
    let entries = Dynamic::read(&image, dynamic.p_vaddr(endian), dynamic.p_filesz(endian))?;
    if entries.value(DT_FLAGS_1).unwrap_or(0) & DF_1_PIE.0 == 0 {
        return Err(RepackError::NotPie);
    }
    if entries.value(DT_TEXTREL).is_some() {
        return Err(odd("code, which relocations write,"));
    }
    let mut done = Done { relocations: 0, pages: Vec::new() };
    relr(&mut image, &entries, by, &mut done)?;
    rela(&mut image, &entries, by, &mut done)?;
    slots(&mut image, &entries, by)?;
    if let Some(table) = entries.value(DT_PLTGOT) {
        // Its first word is the address of the dynamic section (ABI).
        let place = image.place(table, 8, "table of the run-time linker")?;
        if image.word(place) == dynamic.p_vaddr(endian) {
            image.add(place, by);
        }
    }
    entries.moved(&mut image, by);

    // The run-time linker has one table, others one more (SHT_DYNSYM and SHT_SYMTAB of the generic ABI).
    let tables = |kind| sections.iter().filter(move |section| section.sh_type(endian) == kind);
    if tables(SHT_DYNSYM).count() != 1 || tables(SHT_SYMTAB).count() > 1 {
        return Err(odd("symbols"));
    }
    for section in tables(SHT_DYNSYM).chain(tables(SHT_SYMTAB)) {
        let (from, size) = (section.sh_offset(endian), section.sh_size(endian));
        let end = from.checked_add(size).filter(|end| *end <= file.len() as u64).ok_or(odd("symbols"))?;
        symbols(&mut image, from..end, by);
    }
    for (number, section) in sections.iter().enumerate() {
        if section.sh_flags(endian).0 & SHF_ALLOC.0 != 0 {
            let place = header.e_shoff(endian) as usize + number * usize::from(header.e_shentsize(endian));
            image.add(place + 16, by);
        }
    }
    for (number, one) in headers.iter().enumerate().filter(|(_, one)| one.p_type(endian) != PT_GNU_STACK) {
        let place = header.e_phoff(endian) as usize + number * usize::from(header.e_phentsize(endian));
        image.put(place + 16, one.p_vaddr(endian).wrapping_add(by));
        image.put(place + 24, one.p_paddr(endian).wrapping_add(by));
    }
    let mut changed = *header;
    changed.e_type.set(endian, ET_EXEC);
    changed.e_entry = U64::new(endian, header.e_entry(endian).wrapping_add(by));
    let head = object::pod::bytes_of(&changed);
    image.bytes[..head.len()].copy_from_slice(head);
    Ok(Prelinked { bytes: image.bytes, moved_by: by, relocations: done.relocations, pages: done.pages() })
}

/// The dynamic section.
struct Dynamic {
    /// Where each entry's value stands, and the value.
    entries: HashMap<i64, (usize, u64)>,
}

impl Dynamic {
    fn read(image: &Image, address: u64, size: u64) -> Result<Self, RepackError> {
        let from = image.place(address, size, "dynamic section")?;
        let places = (0..size / DYN).map(|number| from + (number * DYN) as usize);
        let read = places.map(|place| (image.word(place) as i64, (place + 8, image.word(place + 8))));
        Ok(Self { entries: read.take_while(|(tag, _)| *tag != DT_NULL.0).collect() })
    }

    fn value(&self, tag: DynamicTag) -> Option<u64> {
        self.entries.get(&tag.0).map(|(_, value)| *value)
    }

    fn set(&self, image: &mut Image, tag: DynamicTag, value: u64) {
        if let Some((place, _)) = self.entries.get(&tag.0) {
            image.put(*place, value);
        }
    }

    /// Places of the entries of a table; none where there is no table.
    fn table(
        &self,
        image: &Image,
        (address, size): (DynamicTag, DynamicTag),
        entry: u64,
        what: &'static str,
    ) -> Result<Vec<usize>, RepackError> {
        let (Some(address), Some(size)) = (self.value(address), self.value(size)) else { return Ok(Vec::new()) };
        let from = image.place(address, size, what)?;
        Ok((0..size / entry).map(|number| from + (number * entry) as usize).collect())
    }

    /// Addresses are moved, and nothing is position-independent any more. The sizes of tables are the business of those.
    fn moved(&self, image: &mut Image, by: u64) {
        for tag in ADDRESSES {
            if let Some(value) = self.value(tag) {
                self.set(image, tag, value.wrapping_add(by));
            }
        }
        if let Some(flags) = self.value(DT_FLAGS_1) {
            self.set(image, DT_FLAGS_1, flags & !DF_1_PIE.0);
        }
    }
}

/// What was done.
struct Done {
    relocations: u64,
    pages: Vec<u64>,
}

impl Done {
    fn at(&mut self, address: u64) {
        self.relocations += 1;
        let page = address / PAGE_SIZE;
        if self.pages.last() != Some(&page) {
            self.pages.push(page);
        }
    }

    fn pages(mut self) -> u64 {
        self.pages.sort_unstable();
        self.pages.dedup();
        self.pages.len() as u64
    }
}

/// Packed relocations (RELR of the generic ABI): an address, and bitmaps of the words behind it.
fn relr(image: &mut Image, entries: &Dynamic, by: u64, done: &mut Done) -> Result<(), RepackError> {
    const WHAT: &str = "packed relocations";
    let table = entries.table(image, (DT_RELR, DT_RELRSZ), 8, WHAT)?;
    let mut next = 0u64;
    let mut at = |image: &mut Image, address: u64| {
        let target = image.place(address, 8, WHAT)?;
        image.add(target, by);
        done.at(address);
        Ok::<(), RepackError>(())
    };
    for place in table {
        let entry = image.word(place);
        if entry & 1 == 0 {
            at(image, entry)?;
            next = entry.wrapping_add(8);
            continue;
        }
        for bit in (0..BITMAP).filter(|bit| entry >> (bit + 1) & 1 == 1) {
            at(image, next.wrapping_add(bit * 8))?;
        }
        next = next.wrapping_add(BITMAP * 8);
    }
    entries.set(image, DT_RELRSZ, 0);
    Ok(())
}

/// The others: those of no symbol are done, and what is left of the table comes first in it.
fn rela(image: &mut Image, entries: &Dynamic, by: u64, done: &mut Done) -> Result<(), RepackError> {
    const WHAT: &str = "relocations";
    let table = entries.table(image, (DT_RELA, DT_RELASZ), RELA, WHAT)?;
    let slots = entries.table(image, (DT_JMPREL, DT_PLTRELSZ), RELA, WHAT)?;
    let is_within =
        |place: &usize| table.first().zip(table.last()).is_some_and(|(from, to)| (from..=to).contains(&place));
    if slots.iter().any(is_within) {
        return Err(RepackError::Odd { what: "one table in another" });
    }
    let mut left: Vec<[u64; 3]> = Vec::new();
    for place in &table {
        let [offset, info, addend] = [0, 8, 16].map(|at| image.word(place + at));
        match info as u32 {
            kind if kind == R_X86_64_RELATIVE.0 => {
                let target = image.place(offset, 8, WHAT)?;
                image.put(target, addend.wrapping_add(by));
                done.at(offset);
            }
            kind => left.push([offset.wrapping_add(by), info, moved_addend(kind, addend, by)]),
        }
    }
    for (number, place) in table.iter().enumerate() {
        let words = left.get(number).copied().unwrap_or_default();
        (0..3).for_each(|at| image.put(place + at * 8, words[at]));
    }
    entries.set(image, DT_RELASZ, left.len() as u64 * RELA);
    entries.set(image, DT_RELACOUNT, 0);
    Ok(())
}

/// An address that the program itself computes is an addend; the addend of a symbol is none.
fn moved_addend(kind: u32, addend: u64, by: u64) -> u64 {
    if kind == R_X86_64_IRELATIVE.0 { addend.wrapping_add(by) } else { addend }
}

/// Calls of other files: until the first call a slot holds the address of what looks the function up, to which the run-time linker
/// adds where the program is.
fn slots(image: &mut Image, entries: &Dynamic, by: u64) -> Result<(), RepackError> {
    const WHAT: &str = "table of calls";
    for place in entries.table(image, (DT_JMPREL, DT_PLTRELSZ), RELA, WHAT)? {
        let [offset, info, addend] = [0, 8, 16].map(|at| image.word(place + at));
        if info as u32 == R_X86_64_JUMP_SLOT.0 {
            let slot = image.place(offset, 8, WHAT)?;
            if image.word(slot) != 0 {
                image.add(slot, by);
            }
        }
        image.put(place, offset.wrapping_add(by));
        image.put(place + 16, moved_addend(info as u32, addend, by));
    }
    Ok(())
}

/// Symbols that are defined as addresses.
fn symbols(image: &mut Image, table: Range<u64>, by: u64) {
    for place in (table.start..table.end).step_by(SYM as usize).filter(|place| place + SYM <= table.end) {
        let place = place as usize;
        let kind = image.bytes[place + 4] & 0xf;
        let section = u16::from_le_bytes([image.bytes[place + 6], image.bytes[place + 7]]);
        if kind != STT_TLS.0 && section != SHN_UNDEF.0 && section != SHN_ABS.0 {
            image.add(place + 8, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_moved_once_and_its_relocations_are_gone() {
        let file = std::fs::read("/bin/sh").unwrap();
        let made = prelink(&file).unwrap();
        assert_eq!((made.bytes.len(), made.moved_by % PAGE_SIZE), (file.len(), 0));
        assert!(made.relocations > 100 && (2..1_000).contains(&made.pages), "{} {}", made.relocations, made.pages);
        assert!(matches!(prelink(&made.bytes), Err(RepackError::NotPie)));
    }

    #[test]
    fn what_cannot_be_prelinked_is_refused_with_a_reason() {
        let why = |file: &[u8]| prelink(file).unwrap_err().to_string();
        assert_eq!(why(b"#!/bin/sh\n"), "not a readable ELF file of 64 bits");
        let file = std::fs::read("/bin/sh").unwrap();
        let mut other = file.clone();
        other[18] = 183;
        assert_eq!(why(&other), "not a file for x86-64");
        assert!(
            why(&file[..file.len() / 2]).starts_with("not a readable ELF file"),
            "{}",
            why(&file[..file.len() / 2])
        );
        // Each byte of the headers and of the dynamic section as something else: an error or a file, and no panic.
        let (_, endian, headers) = parsed(&file).unwrap();
        let dynamic = headers.iter().find(|one| one.p_type(endian) == PT_DYNAMIC).unwrap();
        let from = dynamic.p_offset(endian) as usize;
        for place in (0..1024).chain(from..from + dynamic.p_filesz(endian) as usize) {
            for value in [0, 0x7f, 0xff] {
                let mut broken = file.clone();
                broken[place] = value;
                let _ = prelink(&broken);
            }
        }
    }
}
