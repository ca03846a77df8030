//! Names of the kernel's functions, from its own list (`/proc/kallsyms`).

use super::{Names, Reason, elf, opened, refuse};
use blazesym::symbolize::source::{Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Bytes of a list that are read; lists of large kernels have 20 MiB.
const MAX_LIST: u64 = 256 << 20;

/// Name of what is no function. A symbol of the list has no size and is held to reach up to the next one, so data must stay in
/// the list, or the function before them would.
const NO_FUNCTION: &str = "-";

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
