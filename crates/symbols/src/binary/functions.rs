//! The functions of a file: symbols first, then descriptions for what has none.

use super::{Binary, Function, descriptions};
use crate::unwind_table::{Image, UnwindTableError};
use object::Endianness;
use object::elf::{
    FileHeader64, SHT_DYNSYM, SHT_SYMTAB, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, SectionType, SymbolBind,
};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Functions in one file; Chromium has some 600 000.
const MAX_FUNCTIONS: usize = 8 << 20;
/// The longest name that is kept, in bytes; C++ templates make names of some KiB.
const MAX_NAME: usize = 16 << 10;
/// Bytes of all names of one file; those of Chromium are 60 MB.
const MAX_NAMES: usize = 1 << 29;

/// How good a name is: a linker knows global ones best, then those that a compiler did not make up, then short ones.
type Preference<'a> = (u8, Reverse<bool>, Reverse<usize>, Reverse<&'a [u8]>);

#[derive(Default)]
struct FunctionCandidate<'a> {
    size: u64,
    name: Option<(Preference<'a>, &'a [u8])>,
}

impl Binary {
    /// Reads a file. `bytes` may be a mapping of it.
    ///
    /// # Errors
    /// Not a readable ELF file of this machine, no executable segment, or more functions than any program has.
    pub fn of_elf(bytes: &[u8]) -> Result<Self, UnwindTableError> {
        let image = Image::of_this_machine(bytes)?;
        let (mut binary, header, endian) = Self::headers(bytes)?;
        read(&mut binary, &image, header, endian, bytes)?;
        Ok(binary)
    }
}

/// Fills in the functions.
fn read(
    binary: &mut Binary,
    image: &Image,
    header: &FileHeader64<Endianness>,
    endian: Endianness,
    bytes: &[u8],
) -> Result<(), UnwindTableError> {
    let mut found: BTreeMap<u64, FunctionCandidate> = BTreeMap::new();
    let too_many = UnwindTableError::TooLarge { what: "functions", limit: MAX_FUNCTIONS as u64 };
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        symbols(binary, header, endian, bytes, kind, &mut found);
        if found.len() > MAX_FUNCTIONS {
            return Err(too_many);
        }
    }
    for range in descriptions::ranges(image) {
        if !is_code(binary, range.start) {
            continue;
        }
        let one = found.entry(range.start).or_default();
        if one.size == 0 {
            one.size = range.end - range.start;
        }
    }
    if found.len() > MAX_FUNCTIONS {
        return Err(too_many);
    }
    let mut names = 0;
    binary.functions.reserve(found.len());
    for (address, FunctionCandidate { size, name }) in found {
        let end = binary.code_at(address).map_or(address, |segment| segment.address.saturating_add(segment.size));
        let name = name.map(|(_, name)| String::from_utf8_lossy(name).into_owned());
        names += name.as_ref().map_or(0, String::len);
        let name = name.filter(|_| names <= MAX_NAMES);
        binary.functions.push(Function { address, size: size.min(end - address), name });
    }
    Ok(())
}

/// Whether code stands there: not the stubs of the linkage table, whose description begins before them.
fn is_code(binary: &Binary, address: u64) -> bool {
    if binary.code_at(address).is_none() {
        return false;
    }
    // Where there are no section headers, the segment is all that says so.
    let section = binary.section_of(address);
    section.is_none_or(|section| section.executable && !section.name.starts_with(".plt"))
}

fn symbols<'a>(
    binary: &mut Binary,
    header: &FileHeader64<Endianness>,
    endian: Endianness,
    bytes: &'a [u8],
    kind: SectionType,
    found: &mut BTreeMap<u64, FunctionCandidate<'a>>,
) {
    let Ok(sections) = header.sections(endian, bytes) else { return };
    if !sections.iter().any(|section| section.sh_type(endian) == kind) {
        return;
    }
    let Ok(table) = sections.symbols(endian, bytes, kind) else { return };
    for symbol in table.iter() {
        let type_ = symbol.st_type();
        if (type_ != STT_FUNC && type_ != STT_GNU_IFUNC) || symbol.is_undefined(endian) {
            continue;
        }
        let (address, size) = (symbol.st_value(endian), symbol.st_size(endian));
        let name = table.symbol_name(endian, symbol).unwrap_or_default();
        // "memcpy@@GLIBC_2.14" is the linker's own spelling in `.symtab`.
        let name = name.split(|byte| *byte == b'@').next().unwrap_or_default();
        if name == b"_dl_debug_state" {
            binary.debug_state = Some(address);
        }
        // Without a size it may be a label in front of data; a description decides.
        if size == 0 || !is_code(binary, address) {
            continue;
        }
        let one = found.entry(address).or_default();
        one.size = one.size.max(size);
        if name.is_empty() || name.len() > MAX_NAME {
            continue;
        }
        let rank = preference(symbol.st_bind(), name);
        if one.name.as_ref().is_none_or(|(known, _)| *known < rank) {
            one.name = Some((rank, name));
        }
        if found.len() > MAX_FUNCTIONS {
            return;
        }
    }
}

fn preference(bind: SymbolBind, name: &[u8]) -> Preference<'_> {
    let scope = match bind {
        STB_GLOBAL => 2,
        STB_WEAK => 1,
        _ => 0,
    };
    (scope, Reverse(name.contains(&b'.')), Reverse(name.len()), Reverse(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_names_the_linkers_own_comes_first() {
        let mut names = [
            preference(SymbolBind(0), b"f.localalias"),
            preference(STB_GLOBAL, b"f_longer"),
            preference(STB_WEAK, b"f"),
            preference(STB_GLOBAL, b"f_a"),
            preference(SymbolBind(0), b"f"),
        ];
        names.sort();
        let order: Vec<&[u8]> = names.iter().map(|(_, _, _, Reverse(name))| *name).collect();
        assert_eq!(order, [&b"f.localalias"[..], b"f", b"f", b"f_longer", b"f_a"]);
    }
}
