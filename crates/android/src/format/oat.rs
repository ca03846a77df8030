//! oat and odex: an ELF file whose `.rodata` begins with an oat header, which says how and why it was compiled.
//!
//! Layouts by `runtime/oat.h` of AOSP's art: 124 of Android 8.0, 131 of 8.1, 138 of 9, 170 of 10, 183 of 11, 199 of 12, 225 of 13, 239 of
//! 14; 241 was looked at in a later snapshot and has the same. By files of devices: 169 of a preview of 10, 230 of 14. Between these a
//! version has the layout whose key-value store fits.

use super::little_endian::Bytes;
use super::{FormatError, version};
use object::Endianness;
use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::FileHeader;
use std::collections::BTreeMap;

const MAGIC: &[u8] = b"oat\n";
const WHAT: &str = "an oat header";
/// A key-value store has the command line of dex2oat and class paths: some ten KiB.
const MOST_STORE: usize = 1 << 20;
/// Keys of which `runtime/oat.h` has 13.
const MOST_KEYS: usize = 64;
/// Where a header is looked for without the section table: `.rodata` begins at a page, behind tables of a few KiB.
const SEARCHED: usize = 1 << 20;
const PAGE: usize = 4096;

/// How the header was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// By the section `.rodata`.
    Section,
    /// At the begin of a page: the section table is at the end of the file, of which only the head is there.
    Page,
}

/// An oat header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oat {
    /// Its version.
    pub version: u32,
    /// ART's name of the instruction set, by the ELF header (`arm64`).
    pub isa: Option<&'static str>,
    /// DEX files that it was compiled from.
    pub dex_files: u32,
    /// Keys and values: `compiler-filter`, `compilation-reason`, `classpath`, `dex2oat-cmdline`, ...
    pub store: BTreeMap<String, String>,
    /// How it was found.
    pub found_by: FoundBy,
}

impl Oat {
    /// Reads it from an ELF file, or from the head of one.
    ///
    /// # Errors
    /// It is none, or of an unknown version.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let (rodata, isa) = match bytes.get(4) {
            _ if !bytes.starts_with(b"\x7fELF") => return Err(FormatError::Magic("an ELF file")),
            Some(1) => of_elf::<FileHeader32<Endianness>>(bytes),
            _ => of_elf::<FileHeader64<Endianness>>(bytes),
        };
        match rodata {
            Some(rodata) if rodata.starts_with(MAGIC) => header(rodata, isa, FoundBy::Section),
            Some(_) => Err(FormatError::Magic(".rodata of an oat file")),
            None => {
                let searched = &bytes[..bytes.len().min(SEARCHED)];
                let at_page = searched.chunks(PAGE).position(|page| page.starts_with(MAGIC));
                let at = at_page.ok_or(FormatError::Magic(".rodata of an oat file"))? * PAGE;
                header(&bytes[at..], isa, FoundBy::Page)
            }
        }
    }

    /// The compiler filter (`speed-profile`).
    pub fn compiler_filter(&self) -> Option<&str> {
        self.store.get("compiler-filter").map(String::as_str)
    }

    /// Why it was compiled (`bg-dexopt`).
    pub fn compilation_reason(&self) -> Option<&str> {
        self.store.get("compilation-reason").map(String::as_str)
    }

    /// The Android release that writes this version, where one is known.
    pub fn release(&self) -> Option<&'static str> {
        LAYOUTS.iter().find(|layout| layout.version == self.version).map(|layout| layout.release)
    }
}

/// What an ELF file has as `.rodata`, where its section table is there, and the instruction set.
fn of_elf<E: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> (Option<&[u8]>, Option<&'static str>) {
    let Ok(elf) = E::parse(bytes) else { return (None, None) };
    let Ok(endian) = elf.endian() else { return (None, None) };
    let sections = elf.sections(endian, bytes).ok();
    let rodata = sections.and_then(|sections| {
        let (_, section) = sections.section_by_name(endian, b".rodata")?;
        object::read::elf::SectionHeader::data(section, endian, bytes).ok()
    });
    (rodata, isa(elf.e_machine(endian).0))
}

/// ART's names (`libartbase/arch/instruction_set.h`) of `e_machine`.
fn isa(machine: u16) -> Option<&'static str> {
    use object::elf::{EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_X86_64};
    let known = [(EM_ARM, "arm"), (EM_AARCH64, "arm64"), (EM_386, "x86"), (EM_X86_64, "x86_64"), (EM_RISCV, "riscv64")];
    known.into_iter().find(|(number, _)| number.0 == machine).map(|(_, name)| name)
}

struct Layout {
    version: u32,
    release: &'static str,
    /// 32-bit numbers between the version and `key_value_store_size_`.
    numbers: usize,
}

const fn layout(version: u32, release: &'static str, numbers: usize) -> Layout {
    Layout { version, release, numbers }
}

/// Checksum, instruction set, its features, DEX files and the offset of code are in all; then: the offset of the list of DEX files (since
/// 131), of what the boot class path has in `.bss` (since 13), and as many trampolines as the release has; until 9 three numbers of the
/// boot image.
const LAYOUTS: [Layout; 11] = [
    layout(124, "8.0", 15),
    layout(131, "8.1", 16),
    layout(138, "9", 16),
    layout(169, "a preview of 10", 13),
    layout(170, "10", 11),
    layout(183, "11", 12),
    layout(199, "12", 13),
    layout(225, "13", 14),
    layout(230, "14", 14),
    layout(239, "14", 14),
    layout(241, "15", 14),
];

fn header(bytes: &[u8], isa: Option<&'static str>, found_by: FoundBy) -> Result<Oat, FormatError> {
    let mut head = Bytes::new(bytes, WHAT);
    head.take(MAGIC.len())?;
    let text = head.array()?;
    let version = version(text, "an oat file")?;
    let known = LAYOUTS.iter().find(|layout| layout.version == version);
    let lengths: Vec<usize> = match known {
        Some(layout) => vec![layout.numbers],
        None => (11..=16).collect(),
    };
    let mut problem = super::unknown(text, "an oat file");
    for numbers in lengths {
        match with_layout(head, numbers) {
            Ok((dex_files, store)) if known.is_some() || store.contains_key("compiler-filter") => {
                return Ok(Oat { version, isa, dex_files, store, found_by });
            }
            Err(error) if known.is_some() => problem = error,
            _ => {}
        }
    }
    Err(problem)
}

fn with_layout(mut head: Bytes<'_>, numbers: usize) -> Result<(u32, BTreeMap<String, String>), FormatError> {
    let mut dex_files = 0;
    for number in 0..numbers {
        let value = head.u32()?;
        if number == 3 {
            dex_files = value;
        }
    }
    let size = head.u32()? as usize;
    if size > MOST_STORE {
        return Err(FormatError::Wrong("its key-value store is larger than any"));
    }
    Ok((dex_files, store(head.take(size)?)?))
}

/// Keys and values, each with a null byte behind it (`OatHeader::GetStoreKeyValuePairByIndex`, runtime/oat.cc of Android 14). Null bytes
/// where a key would begin are padding.
fn store(bytes: &[u8]) -> Result<BTreeMap<String, String>, FormatError> {
    let mut found = BTreeMap::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix(b"\0") {
            rest = behind;
            continue;
        }
        let (key, behind) = text(rest)?;
        let (value, behind) = text(behind)?;
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(FormatError::Wrong("a key of its store is none"));
        }
        if found.len() >= MOST_KEYS {
            return Err(FormatError::Wrong("its store has more keys than any"));
        }
        found.insert(key, value);
        rest = behind;
    }
    Ok(found)
}

fn text(bytes: &[u8]) -> Result<(String, &[u8]), FormatError> {
    let end = bytes.iter().position(|byte| *byte == 0).ok_or(FormatError::Short("its key-value store"))?;
    Ok((String::from_utf8_lossy(&bytes[..end]).into_owned(), &bytes[end + 1..]))
}
