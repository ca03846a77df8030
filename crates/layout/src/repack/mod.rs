//! A copy of a binary whose file holds together what a start needs: what `slowpath layout repack` makes.
//!
//! Nothing is linked anew and no address changes. The needed pages are copied behind the end of the file, in the order of use, and the
//! loaded segments are split so that these pages are mapped from there. What was there stays, so sections, symbols and debugging
//! information are where they were. A cold start then reads on where it otherwise reads at hundreds of places, and the kernel's readahead,
//! which goes on behind what was read, is right.
//!
//! Owns which pages move where ([`clusters`]) and the bytes of the new file ([`repack`]), and programs whose relocations are done in the
//! file ([`prelink`]). The file is foreign: any bytes give a value or
//! an error. Leaves to `fix` and to traces which pages are needed.
//!
//! What a loader demands (fs/binfmt_elf.c, elf/dl-load.c of glibc): `PT_LOAD` in the order of addresses, offsets and addresses equal
//! modulo the alignment of their segment, and the table of program headers in a loaded segment (since Linux 5.18 any).

pub mod clusters;
pub mod prelink;

use clusters::{Cluster, FilePages};
use object::elf::{
    EM_X86_64, ET_DYN, ET_EXEC, FileHeader64, PF_R, PT_LOAD, PT_PHDR, ProgramHeader64, ProgramType, SHT_NOBITS,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, U16, U32, U64, pod};
use slowpath_tables::PAGE_SIZE;

/// Most program headers of a copy: Linux takes 64 KiB of them (`load_elf_phdrs` in fs/binfmt_elf.c).
pub const MOST_HEADERS: usize = 1100;
/// Program headers of a copy where nobody says how many. Each piece of a segment is a mapping more at every start, also a warm one (7 to
/// 10 us). And a fault maps neighbours inside its piece only, so small pieces hide from the kernel that its readahead hits, and it stops
/// reading ahead in the file (`MMAP_LOTSAMISS` in mm/filemap.c). With about so many, a start from fast storage is not slower.
pub const USUAL_HEADERS: usize = 100;
/// Bytes of a program header of 64 bits.
const HEADER_BYTES: u64 = size_of::<ProgramHeader64<Endianness>>() as u64;

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum RepackError {
    /// The headers cannot be read.
    #[error("not a readable ELF file of 64 bits")]
    NotElf(#[source] object::Error),
    /// A file for another machine: its pages may be larger.
    #[error("not a file for x86-64")]
    Machine,
    /// An object file, a core dump.
    #[error("neither a program nor a shared object")]
    NotLoaded,
    /// Its segments contradict themselves, or what a loader demands.
    #[error("segment {number} cannot be split: {why}")]
    Segment {
        /// Number of the program header.
        number: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// It has more program headers than a copy may have.
    #[error("it has {before} program headers; a copy would have more than {most}")]
    ManyHeaders {
        /// Those that it has.
        before: usize,
        /// Those that a copy may have.
        most: usize,
    },
    /// Bytes that no section and no segment has: self-extracting programs look for such at the end of their file.
    #[error("{bytes} bytes stand behind its last section, which the program may look for at the end of its file")]
    Payload {
        /// How many.
        bytes: u64,
    },
    /// No page of the order lies in a loaded segment.
    #[error("no page of the order is in a segment that is loaded")]
    Nothing,
    /// Relocations of a library, of a program that relocates itself, or of one that has a fixed address.
    #[error("not a position-independent program that the run-time linker loads")]
    NotPie,
    /// Relocations of a file that contradicts itself, or is as no linker makes it.
    #[error("its {what} cannot be read")]
    Odd {
        /// What of it.
        what: &'static str,
    },
}

/// A copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repacked {
    /// The new file.
    pub bytes: Vec<u8>,
    /// Needed pages of the order that are in loaded segments, and the first of the file.
    pub needed: u64,
    /// Pages that stand together now: those, and what lies between them.
    pub moved: u64,
    /// Pieces of consecutive pages that they were.
    pub runs: u64,
    /// Program headers before and now.
    pub headers: (u64, u64),
}

type Header = ProgramHeader64<Endianness>;

/// A loaded segment.
struct Loaded<'a> {
    header: &'a Header,
    offset: u64,
    size: u64,
}

impl Loaded<'_> {
    fn pages(&self) -> std::ops::Range<u64> {
        if self.size == 0 { 0..0 } else { self.offset / PAGE_SIZE..(self.offset + self.size).div_ceil(PAGE_SIZE) }
    }
}

/// Copies a file with these of its pages (numbers in the file, in the order of use) behind its end, with at most `most` program headers.
///
/// # Errors
/// [`RepackError`].
pub fn repack(file: &[u8], order: &[u64], most: usize) -> Result<Repacked, RepackError> {
    let (header, endian, headers) = parsed(file)?;
    if ![ET_DYN, ET_EXEC].contains(&header.e_type(endian)) {
        return Err(RepackError::NotLoaded);
    }
    let loaded = loaded(headers, endian, file.len() as u64)?;
    let behind = behind(header, headers, endian, file)?;
    if behind > 0 {
        return Err(RepackError::Payload { bytes: behind });
    }
    // Segments of programs share a page with their neighbour at most; many over all of a large file would take for ever.
    let pages: u64 = loaded.iter().map(|one| one.pages().end - one.pages().start).fold(0, u64::saturating_add);
    if loaded.len() > MOST_HEADERS || pages > 2 * (file.len() as u64).div_ceil(PAGE_SIZE) + loaded.len() as u64 {
        return Err(RepackError::Segment { number: headers.len() - 1, why: "segments overlap in the file" });
    }
    if !order.iter().any(|page| loaded.iter().any(|one| one.pages().contains(page))) {
        return Err(RepackError::Nothing);
    }
    let segments: Vec<FilePages> = loaded.iter().map(|one| FilePages(one.pages())).collect();
    // One header more, for the segment that holds the headers.
    let others = headers.len() - loaded.len() + 1;
    let many = || RepackError::ManyHeaders { before: headers.len(), most };
    let room = most.min(MOST_HEADERS).checked_sub(others).ok_or_else(many)?;
    // The head of the file changes, and a program that looks at its own in memory is to find it as it was.
    let order: Vec<u64> = order.iter().copied().chain([0]).collect();
    let cluster = Cluster::of(&segments, &order, room).ok_or_else(many)?;
    let pieces = loaded.iter().map(|one| cluster.pieces(one.pages()).len()).sum::<usize>();
    let count = others + pieces;
    let table = (file.len() as u64).next_multiple_of(PAGE_SIZE);
    let table_bytes = count as u64 * HEADER_BYTES;
    let first = (table + table_bytes).div_ceil(PAGE_SIZE);
    let top = loaded.iter().map(|one| one.header.p_vaddr(endian).saturating_add(one.header.p_memsz(endian))).max();
    let top = top.and_then(|top| top.checked_next_multiple_of(PAGE_SIZE));
    let top = top.filter(|top| top.checked_add(table_bytes).is_some());
    let top = top.ok_or(RepackError::Segment { number: headers.len() - 1, why: "it ends at the end of memory" })?;
    let appended = Appended { table, table_bytes, first, top };

    let mut made: Vec<Header> = Vec::with_capacity(count);
    let mut are_split = false;
    for one in headers {
        match one.p_type(endian) {
            PT_LOAD if are_split => {}
            PT_LOAD => {
                are_split = true;
                made.extend(loaded.iter().flat_map(|one| appended.split(one, &cluster, endian)));
                made.push(appended.of_table(PT_LOAD, PAGE_SIZE, endian));
            }
            PT_PHDR => made.push(appended.of_table(PT_PHDR, 8, endian)),
            _ => made.push(*one),
        }
    }
    let mut bytes = Vec::with_capacity(((first + cluster.pages().len() as u64) * PAGE_SIZE) as usize);
    let mut changed = *header;
    changed.e_phoff = U64::new(endian, table);
    changed.e_phnum = U16::new(endian, made.len() as u16);
    bytes.extend_from_slice(pod::bytes_of(&changed));
    bytes.extend_from_slice(file.get(bytes.len()..).unwrap_or_default());
    bytes.resize(table as usize, 0);
    bytes.extend_from_slice(pod::bytes_of_slice(&made));
    for (place, page) in (first..).zip(cluster.pages()) {
        bytes.resize((place * PAGE_SIZE) as usize, 0);
        let from = (page * PAGE_SIZE) as usize;
        bytes.extend_from_slice(&file[from..file.len().min(from + PAGE_SIZE as usize)]);
    }
    bytes.resize(((first + cluster.pages().len() as u64) * PAGE_SIZE) as usize, 0);
    Ok(Repacked {
        bytes,
        needed: cluster.needed(),
        moved: cluster.pages().len() as u64,
        runs: cluster.runs(),
        headers: (headers.len() as u64, made.len() as u64),
    })
}

/// A copy in which every page is where it was.
///
/// # Errors
/// It is no ELF file for x86-64.
pub fn unmoved(file: &[u8]) -> Result<Repacked, RepackError> {
    let headers = parsed(file)?.2.len() as u64;
    Ok(Repacked { bytes: file.to_vec(), needed: 0, moved: 0, runs: 0, headers: (headers, headers) })
}

/// The headers of a file, and how its numbers are written.
fn parsed(file: &[u8]) -> Result<(&FileHeader64<Endianness>, Endianness, &[Header]), RepackError> {
    let header = FileHeader64::<Endianness>::parse(file).map_err(RepackError::NotElf)?;
    let endian = header.endian().map_err(RepackError::NotElf)?;
    if header.e_machine(endian) != EM_X86_64 || endian != Endianness::Little {
        return Err(RepackError::Machine);
    }
    Ok((header, endian, header.program_headers(endian, file).map_err(RepackError::NotElf)?))
}

/// The loaded segments, each as a loader takes it.
fn loaded(headers: &[Header], endian: Endianness, length: u64) -> Result<Vec<Loaded<'_>>, RepackError> {
    let mut loaded: Vec<Loaded<'_>> = Vec::new();
    let mut above = 0u64;
    for (number, header) in headers.iter().enumerate().filter(|(_, one)| one.p_type(endian) == PT_LOAD) {
        let wrong = |why| RepackError::Segment { number, why };
        let (offset, size) = (header.p_offset(endian), header.p_filesz(endian));
        let (address, memory) = (header.p_vaddr(endian), header.p_memsz(endian));
        if offset.checked_add(size).is_none_or(|end| end > length) {
            return Err(wrong("the file ends before it"));
        }
        if memory < size || address < above {
            return Err(wrong("segments are in no order of addresses"));
        }
        if address % PAGE_SIZE != offset % PAGE_SIZE {
            return Err(wrong("its place in the file does not fit its address"));
        }
        above = address.checked_add(memory).ok_or(wrong("it ends behind the end of memory"))?;
        loaded.push(Loaded { header, offset, size });
    }
    Ok(loaded)
}

/// Bytes of the file behind everything that its headers know, without zeros at the end.
fn behind(
    header: &FileHeader64<Endianness>,
    headers: &[Header],
    endian: Endianness,
    file: &[u8],
) -> Result<u64, RepackError> {
    let sections = header.section_headers(endian, file).map_err(RepackError::NotElf)?;
    let table = |from: u64, count: usize, bytes: u16| from.saturating_add(count as u64 * u64::from(bytes));
    let mut end = table(header.e_shoff(endian), sections.len(), header.e_shentsize(endian));
    end = end.max(table(header.e_phoff(endian), headers.len(), header.e_phentsize(endian)));
    for one in headers {
        end = end.max(one.p_offset(endian).saturating_add(one.p_filesz(endian)));
    }
    for one in sections.iter().filter(|one| one.sh_type(endian) != SHT_NOBITS) {
        end = end.max(one.sh_offset(endian).saturating_add(one.sh_size(endian)));
    }
    let rest = file.get(usize::try_from(end).unwrap_or(usize::MAX)..).unwrap_or_default();
    Ok(rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1))
}

/// Where the new things stand: the table of program headers, in the file and in memory, and the first page of the cluster.
struct Appended {
    table: u64,
    table_bytes: u64,
    first: u64,
    top: u64,
}

impl Appended {
    /// The headers of a segment's pieces.
    fn split(&self, one: &Loaded<'_>, cluster: &Cluster, endian: Endianness) -> Vec<Header> {
        let pieces = cluster.pieces(one.pages());
        let last = pieces.len().saturating_sub(1);
        if pieces.is_empty() {
            return vec![*one.header];
        }
        let header = |(number, piece): (usize, &clusters::Piece)| {
            let from = (piece.pages.start * PAGE_SIZE).max(one.offset);
            let to = (piece.pages.end * PAGE_SIZE).min(one.offset + one.size);
            let moved_by = from - one.offset;
            let mut made = *one.header;
            if let Some(place) = piece.place {
                made.p_offset = U64::new(endian, (self.first + place) * PAGE_SIZE + from % PAGE_SIZE);
                made.p_align = U64::new(endian, PAGE_SIZE);
            } else {
                made.p_offset = U64::new(endian, from);
            }
            made.p_vaddr = U64::new(endian, one.header.p_vaddr(endian) + moved_by);
            made.p_paddr = U64::new(endian, one.header.p_paddr(endian).wrapping_add(moved_by));
            made.p_filesz = U64::new(endian, to - from);
            // What has no bytes in the file comes behind the last piece.
            let absent = if number == last { one.header.p_memsz(endian) - one.size } else { 0 };
            made.p_memsz = U64::new(endian, to - from + absent);
            made
        };
        pieces.iter().enumerate().map(header).collect()
    }

    /// A header for the table of headers.
    fn of_table(&self, kind: ProgramType, align: u64, endian: Endianness) -> Header {
        let long = |value| U64::new(endian, value);
        Header {
            p_type: U32::new(endian, kind),
            p_flags: U32::new(endian, PF_R),
            p_offset: long(self.table),
            p_vaddr: long(self.top),
            p_paddr: long(self.top),
            p_filesz: long(self.table_bytes),
            p_memsz: long(self.table_bytes),
            p_align: long(align),
        }
    }
}

/// Whether a loader finds, for each byte that it maps of a file, the same byte in a copy, and the same length behind the last.
pub(crate) fn maps_the_same(file: &[u8], copy: &[u8]) -> bool {
    let read = |bytes: &[u8]| -> Option<Vec<(u64, u64, u64, u64)>> {
        let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let parts = loaded(header.program_headers(endian, bytes).ok()?, endian, bytes.len() as u64).ok()?;
        let address = |one: &Loaded<'_>| (one.header.p_vaddr(endian), one.header.p_memsz(endian));
        Some(parts.iter().map(|one| (address(one).0, one.offset, one.size, address(one).1)).collect())
    };
    let (Some(before), Some(after)) = (read(file), read(copy)) else { return false };
    let at = |wanted: u64| after.iter().find(|(address, _, size, _)| (*address..address + size).contains(&wanted));
    let is_same = |(address, offset, size, memory): &(u64, u64, u64, u64)| {
        let mut done = 0;
        while done < *size {
            let Some((from, place, there, room)) = at(address + done) else { return false };
            let behind = address + done - from;
            let length = (there - behind).min(size - done);
            let (a, b) = ((offset + done) as usize, (place + behind) as usize);
            if file[a..a + length as usize] != copy[b..b + length as usize] {
                return false;
            }
            done += length;
            if done == *size && room - behind - length != memory - size {
                return false;
            }
        }
        true
    };
    before.iter().all(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell() -> Vec<u8> {
        std::fs::read("/bin/sh").unwrap()
    }

    #[test]
    fn the_copy_of_a_program_maps_what_the_program_maps() {
        let file = shell();
        let pages = file.len() as u64 / PAGE_SIZE;
        for (step, most) in
            [1, 2, 3, 5, 8, 13].into_iter().flat_map(|step| [20, 40, MOST_HEADERS].map(|most| (step, most)))
        {
            let order: Vec<u64> = (0..pages).rev().step_by(step).collect();
            let copy = repack(&file, &order, most).unwrap();
            assert!(maps_the_same(&file, &copy.bytes), "every {step}. page");
            assert!(copy.moved >= copy.needed && copy.headers.1 as usize <= most, "{:?}", copy.headers);
            let table = file.len().next_multiple_of(PAGE_SIZE as usize);
            assert_eq!(file[64..], copy.bytes[64..file.len()], "all but the file's header is where it was");
            let first = table + (copy.headers.1 * HEADER_BYTES).next_multiple_of(PAGE_SIZE) as usize;
            assert_eq!(copy.bytes.len(), first + (copy.moved * PAGE_SIZE) as usize);
        }
    }

    #[test]
    fn a_changed_byte_is_no_same_mapping() {
        let file = shell();
        let mut copy = repack(&file, &[5, 1], USUAL_HEADERS).unwrap().bytes;
        let last = copy.len() - 1;
        copy[last] ^= 1;
        assert!(!maps_the_same(&file, &copy));
    }

    #[test]
    fn what_cannot_be_copied_is_refused_with_a_reason() {
        let why = |file: &[u8], order: &[u64]| repack(file, order, USUAL_HEADERS).unwrap_err().to_string();
        assert_eq!(why(b"#!/bin/sh\n", &[0]), "not a readable ELF file of 64 bits");
        let file = shell();
        assert_eq!(why(&file, &[1 << 40]), "no page of the order is in a segment that is loaded");
        let mut payload = file.clone();
        payload.extend_from_slice(b"\0\0PK");
        assert!(why(&payload, &[0]).starts_with("4 bytes stand behind its last section"));
        payload.truncate(file.len() + 2);
        assert!(repack(&payload, &[0], USUAL_HEADERS).is_ok(), "zeros are padding");
        let mut other = file.clone();
        other[18] = 183;
        assert_eq!(why(&other, &[0]), "not a file for x86-64");
        let mut core = file.clone();
        core[16] = 4;
        assert_eq!(why(&core, &[0]), "neither a program nor a shared object");
        assert!(why(&file[..file.len() / 2], &[0]).starts_with("segment"), "{}", why(&file[..file.len() / 2], &[0]));
    }
}
