//! What the run-time linker reads and writes before a program begins: the relocations of a file, by the dynamic section alone.

use super::Binary;
use object::Endianness;
use object::elf::{DT_JMPREL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_RELR, DT_RELRSZ, FileHeader64, PT_DYNAMIC};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

/// The kind of relocation that adds the base of the file to an addend, on this machine.
#[cfg(target_arch = "aarch64")]
const RELATIVE: u32 = object::elf::R_AARCH64_RELATIVE.0;
/// The kind of relocation that adds the base of the file to an addend, on this machine.
#[cfg(not(target_arch = "aarch64"))]
const RELATIVE: u32 = object::elf::R_X86_64_RELATIVE.0;

/// Bytes of an entry with addend (`Elf64_Rela`).
pub const ENTRY: u64 = 24;
/// Bytes of a packed word (`Elf64_Relr`).
pub const WORD: u64 = 8;
/// Relocations in one file; Chromium has some 500 000.
const MAX: usize = 8 << 20;

/// The relocations of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relocations {
    /// Addresses at which the base of the file is added, from `DT_RELA`: no symbol is looked up.
    pub relative: Vec<u64>,
    /// The same, from the packed table `DT_RELR`.
    pub packed: Vec<u64>,
    /// Addresses that get the address of a symbol, from `DT_RELA`.
    pub symbolic: Vec<u64>,
    /// Addresses of the linkage table, from `DT_JMPREL`: filled at the first call, or at the start with `-z now`.
    pub calls: Vec<u64>,
    /// Address and bytes of each table that is read.
    pub tables: Vec<(u64, u64)>,
}

impl Relocations {
    /// Those of a file, whose layout is `binary`. Tables that do not stand in the file are taken for empty.
    pub fn of_elf(bytes: &[u8], binary: &Binary) -> Self {
        let Ok(header) = FileHeader64::<Endianness>::parse(bytes) else { return Self::default() };
        let Ok(endian) = header.endian() else { return Self::default() };
        let Ok(segments) = header.program_headers(endian, bytes) else { return Self::default() };
        let dynamic = segments.iter().find(|segment| segment.p_type(endian) == PT_DYNAMIC);
        let Some(Ok(Some(entries))) = dynamic.map(|segment| segment.dynamic(endian, bytes)) else {
            return Self::default();
        };
        let value = |tag| entries.iter().find(|entry| entry.d_tag(endian) == tag).map(|entry| entry.d_val(endian));
        let table = |at, size| {
            let (address, length) = (value(at)?, value(size)?);
            Some((address, length, table_bytes(bytes, binary, address, length)?))
        };
        let mut found = Self::default();
        if let Some((address, length, bytes)) = table(DT_RELA, DT_RELASZ) {
            found.tables.push((address, length));
            for (target, kind) in entries_of(bytes) {
                let is_relative = kind == u64::from(RELATIVE);
                if is_relative { &mut found.relative } else { &mut found.symbolic }.push(target);
            }
        }
        if let Some((address, length, bytes)) = table(DT_JMPREL, DT_PLTRELSZ) {
            found.tables.push((address, length));
            found.calls = entries_of(bytes).map(|(target, _)| target).collect();
        }
        if let Some((address, length, bytes)) = table(DT_RELR, DT_RELRSZ) {
            found.tables.push((address, length));
            found.packed = unpacked(bytes);
        }
        found
    }
}

fn table_bytes<'a>(bytes: &'a [u8], binary: &Binary, address: u64, length: u64) -> Option<&'a [u8]> {
    let from = usize::try_from(binary.offset_of(address)?).ok()?;
    bytes.get(from..from.checked_add(usize::try_from(length).ok()?)?)
}

/// Target and type of each entry; the symbol is not looked at, but one of type relative has none.
fn entries_of(bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let words = bytes.as_chunks::<8>().0.as_chunks::<3>().0.iter().take(MAX);
    words.map(move |[target, information, _]| (word(target), word(information) & 0xffff_ffff))
}

/// The addresses of a packed table: an even word is an address, an odd one a bitmap of the 63 words behind the last (the proposal
/// "Proposal for a new section type SHT_RELR" on generic-abi, 2017).
fn unpacked(bytes: &[u8]) -> Vec<u64> {
    let (mut next, mut found) = (0u64, Vec::new());
    for word in bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)) {
        if word & 1 == 0 {
            found.push(word);
            next = word.wrapping_add(WORD);
        } else {
            let bits = (0..63).filter(|bit| word >> (bit + 1) & 1 == 1);
            found.extend(bits.map(|bit| next.wrapping_add(bit * WORD)));
            next = next.wrapping_add(63 * WORD);
        }
        if found.len() > MAX {
            break;
        }
    }
    found
}

/// Bytes that a packed table needs for these addresses; those that are not aligned cannot be in one.
pub fn packed_bytes(addresses: &[u64]) -> u64 {
    let mut sorted: Vec<u64> = addresses.iter().copied().filter(|address| address % WORD == 0).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let (mut words, mut at) = (0, 0);
    while let Some(first) = sorted.get(at) {
        words += 1;
        at += 1;
        let mut base = first.saturating_add(WORD);
        loop {
            let end = base.saturating_add(63 * WORD);
            let within = sorted[at..].partition_point(|address| *address < end);
            if within == 0 {
                break;
            }
            words += 1;
            at += within;
            base = end;
        }
    }
    words * WORD
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_packed_table_has_the_size_that_is_predicted(picks in proptest::collection::btree_set(1u64..4000, 0..300)) {
            let addresses: Vec<u64> = picks.iter().map(|pick| pick * WORD).collect();
            // Packed as the linkers do it.
            let (mut words, mut rest) = (Vec::new(), addresses.as_slice());
            while let Some((first, later)) = rest.split_first() {
                words.push(*first);
                rest = later;
                let mut base = first + WORD;
                loop {
                    let mut bitmap = 0u64;
                    while let Some(address) = rest.first().filter(|address| **address < base + 63 * WORD) {
                        bitmap |= 1 << ((address - base) / WORD);
                        rest = &rest[1..];
                    }
                    if bitmap == 0 {
                        break;
                    }
                    words.push(bitmap << 1 | 1);
                    base += 63 * WORD;
                }
            }
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            prop_assert_eq!(unpacked(&bytes), addresses.clone());
            prop_assert_eq!(packed_bytes(&addresses), bytes.len() as u64);
        }

        #[test]
        fn any_bytes_are_unpacked(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            unpacked(&bytes);
            entries_of(&bytes).count();
        }
    }
}
