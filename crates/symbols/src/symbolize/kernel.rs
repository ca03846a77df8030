//! Names of the kernel's functions, from its own list (`/proc/kallsyms`).

use super::names::{Names, refuse};
use super::{Reason, elf, image, opened};
use blazesym::symbolize::source::{Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

/// Bytes of a list that are read; lists of large kernels have 20 MiB.
const MAX_LIST: u64 = 256 << 20;

/// Name of what is no function. A symbol of the list has no size and is held to reach up to the next one, so data must stay in
/// the list, or the function before them would.
const NO_FUNCTION: &str = "-";

/// Bytes of the running kernel's notes that are read; there are some 500.
const MAX_NOTES: u64 = 1 << 16;

/// `NT_GNU_BUILD_ID`, elf(5).
const BUILD_ID: u32 = 3;

/// What identifies the kernel of a recording, and where it lay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedKernel {
    /// Its build-id, in hexadecimal.
    pub build_id: String,
    /// One of its symbols, such as `_text`.
    pub symbol: String,
    /// The address of that.
    pub address: u64,
}

/// Where the code of the running kernel is, without its modules, if it is this one and lies at the same place: then addresses of one
/// are addresses of the other. `list` is as in [`super::Sources`].
pub fn running_code(recorded: &RecordedKernel, list: &File) -> Option<Range<u64>> {
    let mut notes = Vec::new();
    File::open("/sys/kernel/notes").ok()?.take(MAX_NOTES).read_to_end(&mut notes).ok()?;
    let is_this = build_id(&notes).is_some_and(|id| image::hexadecimal(id).eq_ignore_ascii_case(&recorded.build_id));
    if !is_this { None } else { code(recorded, &read(list)?) }
}

/// The build-id among notes: sizes of name and content and the type, then both, each up to a multiple of 4 bytes.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let (head, rest) = notes.split_first_chunk::<12>()?;
        let word = |at: usize| Some(u32::from_ne_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let (name, content, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let (name, rest) = rest.split_at_checked(name.checked_next_multiple_of(4)?)?;
        let id = rest.get(..content)?;
        if kind == BUILD_ID && name == b"GNU\0" {
            return Some(id);
        }
        notes = rest.get(content.checked_next_multiple_of(4)?..)?;
    }
}

fn code(recorded: &RecordedKernel, list: &[u8]) -> Option<Range<u64>> {
    let (mut begin, mut end, mut is_there) = (None, None, false);
    for line in list.split(|byte| *byte == b'\n') {
        let mut words = line.split(|byte| *byte == b' ');
        let (Some(address), Some(_), Some(name), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let is_bound = matches!(name, b"_text" | b"_etext");
        if !is_bound && name != recorded.symbol.as_bytes() {
            continue;
        }
        let address = std::str::from_utf8(address).ok().and_then(|address| u64::from_str_radix(address, 16).ok())?;
        match name {
            b"_text" => begin = Some(address),
            b"_etext" => end = Some(address),
            _ => {}
        }
        is_there |= name == recorded.symbol.as_bytes() && address == recorded.address && address != 0;
    }
    begin.zip(end).filter(|_| is_there).map(|(begin, end)| begin..end)
}

/// Names addresses of the kernel.
pub(super) fn name(this_boot: bool, list: Option<&File>, places: &mut BTreeMap<u64, Names>) {
    if !this_boot {
        return refuse(places, Reason::OtherBoot);
    }
    let Some(prepared) = list.and_then(read).map(|list| prepare(&list)) else {
        return refuse(places, Reason::KernelHidden);
    };
    if prepared.is_empty() {
        return refuse(places, Reason::KernelHidden);
    }
    if look_up(&prepared, places).is_none() {
        refuse(places, Reason::Damaged);
    }
}

fn read(mut list: &File) -> Option<Vec<u8>> {
    list.seek(SeekFrom::Start(0)).ok()?;
    let mut bytes = Vec::new();
    list.take(MAX_LIST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The list with one symbol an address: its first function, or where there is none one without a name. Empty where it shows
/// no addresses.
fn prepare(list: &[u8]) -> Vec<u8> {
    let mut symbols: BTreeMap<u64, &str> = BTreeMap::new();
    for line in list.split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
        let Some(address) = u64::from_str_radix(address, 16).ok().filter(|address| *address != 0) else { continue };
        // The end of the kernel's text is marked by symbols of the text (`include/asm-generic/sections.h`).
        let is_function = matches!(kind, "t" | "T" | "w" | "W") && !matches!(name, "_etext" | "_einittext");
        let known = symbols.entry(address).or_insert(NO_FUNCTION);
        if is_function && *known == NO_FUNCTION {
            *known = name;
        }
    }
    if symbols.values().all(|name| *name == NO_FUNCTION) {
        return Vec::new();
    }
    symbols.iter().flat_map(|(address, name)| format!("{address:x} t {name}\n").into_bytes()).collect()
}

fn look_up(list: &[u8], places: &mut BTreeMap<u64, Names>) -> Option<()> {
    let file = opened::in_memory(list).ok()?;
    let kernel = Kernel {
        kallsyms: blazesym::MaybeDefault::Some(opened::path_of(&file)),
        vmlinux: blazesym::MaybeDefault::None,
        debug_syms: false,
        ..Kernel::default()
    };
    let addresses: Vec<u64> = places.keys().copied().collect();
    let symbolizer = Symbolizer::new();
    let found = symbolizer.symbolize(&Source::Kernel(kernel), Input::AbsAddr(&addresses)).ok()?;
    for (names, found) in places.values_mut().zip(found) {
        *names = match found {
            Symbolized::Sym(symbol) if symbol.name != NO_FUNCTION => Ok(elf::functions(&symbol)),
            _ => Err(Reason::NotCovered),
        };
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "ffffffff81000000 D _text_of_data\n\
        ffffffff81000000 T first\n\
        ffffffff81000100 t second\n\
        ffffffff81000200 T _etext\n\
        ffffffff82000000 D table\n\
        ffffffffc0000000 t _RNvCs1234_7mycrate3foo\t[a_module]\n\
        ffffffffc0000080 d data\t[a_module]\n";

    fn names(list: &str, this_boot: bool, addresses: &[u64]) -> Vec<Result<String, Reason>> {
        let file = opened::in_memory(list.as_bytes()).unwrap();
        let mut places = addresses.iter().map(|address| (*address, Err(Reason::NotCovered))).collect();
        name(this_boot, Some(&file), &mut places);
        places.into_values().map(|names| names.map(|functions| functions[0].name.clone())).collect()
    }

    #[test]
    fn a_function_reaches_to_the_next_symbol_and_data_are_none() {
        let addresses = [
            0xffff_ffff_80ff_ffff,
            0xffff_ffff_8100_0000,
            0xffff_ffff_8100_00ff,
            0xffff_ffff_8100_0100,
            0xffff_ffff_8100_0200,
            0xffff_ffff_8200_0010,
            0xffff_ffff_c000_007f,
            0xffff_ffff_c000_0080,
        ];
        let name = |name: &str| Ok(name.to_owned());
        let none = || Err(Reason::NotCovered);
        let expected =
            [none(), name("first"), name("first"), name("second"), none(), none(), name("mycrate::foo"), none()];
        assert_eq!(names(LIST, true, &addresses), expected);
    }

    #[test]
    fn names_hold_for_the_same_kernel_at_the_same_place_only() {
        let list = b"ffffffff81000000 T _text\nffffffff81000100 t f\nffffffff82000000 T _etext\nffffffffc0000000 t _text\t[m]\n";
        let recorded =
            |symbol: &str, address| RecordedKernel { build_id: "00ff".to_owned(), symbol: symbol.to_owned(), address };
        let text = 0xffff_ffff_8100_0000..0xffff_ffff_8200_0000;
        assert_eq!(code(&recorded("_text", text.start), list), Some(text.clone()));
        assert_eq!(code(&recorded("f", text.start + 0x100), list), Some(text));
        for (symbol, address) in [("_text", 0xffff_ffff_8200_0000), ("f", 0), ("g", 0), ("", 0)] {
            assert_eq!(code(&recorded(symbol, address), list), None, "{symbol}");
        }
        assert_eq!(code(&recorded("_text", 0), b"0000000000000000 T _text\n0000000000000000 T _etext\n"), None);
        // No kernel has this build-id.
        let list = opened::in_memory(list).unwrap();
        assert_eq!(running_code(&recorded("_text", 0xffff_ffff_8100_0000), &list), None);
    }

    #[test]
    fn the_build_id_is_one_note_of_several() {
        let note = |name: &[u8], kind: u32, content: &[u8]| {
            let padded = |bytes: &[u8]| [bytes, &vec![0; bytes.len().next_multiple_of(4) - bytes.len()]].concat();
            let sizes = [name.len() as u32, content.len() as u32, kind];
            let head: Vec<u8> = sizes.iter().flat_map(|word| word.to_ne_bytes()).collect();
            [head, padded(name), padded(content)].concat()
        };
        let other = [note(b"Xen\0", 3, b"?"), note(b"Linux\0", 257, &[0])].concat();
        assert_eq!(build_id(&[other.clone(), note(b"GNU\0", 3, &[1, 2, 3])].concat()), Some(&[1, 2, 3][..]));
        assert_eq!(build_id(&other), None);
        let cut = note(b"GNU\0", 3, &[1; 20]);
        assert!((0..cut.len() - 20).all(|at| build_id(&cut[..at]).is_none()));
        assert_eq!(build_id(&[0xff; 64]), None);
    }

    #[test]
    fn a_list_of_zeros_is_hidden_and_one_of_another_boot_is_not_read() {
        let hidden = "0000000000000000 T first\n0000000000000000 t second\n";
        assert_eq!(names(hidden, true, &[0xffff_ffff_8100_0000]), [Err(Reason::KernelHidden)]);
        assert_eq!(names("", true, &[1]), [Err(Reason::KernelHidden)]);
        assert_eq!(names(LIST, false, &[0xffff_ffff_8100_0000]), [Err(Reason::OtherBoot)]);
    }

    #[test]
    fn lines_of_any_bytes_are_passed_over() {
        let list = b"zz T a\n\xff\xfe\n10 T\n\n0x30 T b\n20 T c\n30 T \xff\n20 T d\n";
        let prepared = String::from_utf8(prepare(list)).unwrap();
        assert_eq!(prepared, "20 t c\n");
    }
}
