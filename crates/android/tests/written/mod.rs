//! Files of ART, written from `runtime/oat.h`, `runtime/vdex_file.h` and the DEX format's documentation, with nothing of the parsers.

/// Little-endian numbers.
pub fn numbers(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Keys and values, each with a null byte behind it.
pub fn store(pairs: &[(&str, &str)]) -> Vec<u8> {
    pairs.iter().flat_map(|(key, value)| [key.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat()).collect()
}

/// An oat header with so many numbers between the version and the size of the store; the fourth is the number of DEX files.
pub fn oat_header(version: &str, count: usize, dex_files: u32, store: &[u8]) -> Vec<u8> {
    let mut values = vec![0xdead_beef, 2, 0, dex_files];
    values.resize(count, 0x1000);
    [b"oat\n", version.as_bytes(), b"\0", &numbers(&values), &numbers(&[store.len() as u32]), store].concat()
}

/// An ELF file of a class (32, 64) and machine with `.rodata` at the second page.
pub fn elf(class: u32, machine: u16, rodata: &[u8]) -> Vec<u8> {
    let names = b"\0.rodata\0.shstrtab\0";
    let names_at = 4096 + rodata.len();
    let sections_at = (names_at + names.len()).next_multiple_of(8);
    let is_64 = class == 64;
    let word = |value: usize| {
        if is_64 { (value as u64).to_le_bytes().to_vec() } else { (value as u32).to_le_bytes().to_vec() }
    };
    let (header_size, row_size) = if is_64 { (64u16, 64u16) } else { (52, 40) };
    let mut file = b"\x7fELF".to_vec();
    file.extend([if is_64 { 2 } else { 1 }, 1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([3u16.to_le_bytes(), machine.to_le_bytes()].concat());
    file.extend(1u32.to_le_bytes());
    file.extend([word(0), word(0), word(sections_at)].concat());
    file.extend(0u32.to_le_bytes());
    for value in [header_size, 0, 0, row_size, 3, 2] {
        file.extend(value.to_le_bytes());
    }
    let row = |name: u32, kind: u32, at: usize, size: usize| {
        let head = numbers(&[name, kind]);
        [head, word(2), word(at), word(at), word(size), numbers(&[0, 0]), word(1), word(0)].concat()
    };
    file.resize(4096, 0);
    file.extend_from_slice(rodata);
    file.extend_from_slice(names);
    file.resize(sections_at, 0);
    file.extend([row(0, 0, 0, 0), row(1, 1, 4096, rodata.len()), row(9, 3, names_at, names.len())].concat());
    file
}

/// A DEX file of this size: its header, and zeros.
pub fn dex(size: u32, methods: u32, classes: u32) -> Vec<u8> {
    let mut file = b"dex\n035\0".to_vec();
    file.extend(numbers(&[7]));
    file.extend([0; 20]);
    // file, header, endian, link x2, map, strings x2, types x2, prototypes x2, fields x2, methods x2, classes x2, data x2
    file.extend(numbers(&[
        size,
        0x70,
        0x1234_5678,
        0,
        0,
        0,
        9,
        0x70,
        3,
        0x90,
        2,
        0xa0,
        1,
        0xb0,
        methods,
        0xc0,
        classes,
        0xd0,
        0,
        0,
    ]));
    assert_eq!(file.len(), 0x70);
    file.resize(size as usize, 0);
    file
}

/// 006 of Android 8.0 and 010 of 8.1.
pub fn vdex_android_8(version: &str, dex: &[u8]) -> Vec<u8> {
    let head = numbers(&[1, dex.len() as u32, 5, 3]);
    [b"vdex", version.as_bytes(), b"\0", &head, &numbers(&[0xc0ff_ee00]), dex, &[0; 8]].concat()
}

/// 019 of Android 9 and 021 of 10 and 11, with a section of DEX files or without.
pub fn vdex_android_9(version: &str, dex: Option<&[u8]>) -> Vec<u8> {
    let more = if version == "021" { numbers(&[11, 22]) } else { Vec::new() };
    let section = match dex {
        Some(dex) => [&numbers(&[dex.len() as u32 + 4, 0, 3])[..], &numbers(&[0]), dex].concat(),
        None => Vec::new(),
    };
    let dex_version: &[u8] = if dex.is_some() { b"002\0" } else { b"000\0" };
    let head = [b"vdex", version.as_bytes(), b"\0", dex_version, &numbers(&[1, 5])].concat();
    [&head[..], &more, &numbers(&[0xc0ff_ee00]), &section, &[0; 64]].concat()
}

/// 027 of Android 12 and later: a table of sections.
pub fn vdex_android_12(rows: &[(u32, u32, u32)]) -> Vec<u8> {
    let table: Vec<u8> = rows.iter().flat_map(|(kind, at, size)| numbers(&[*kind, *at, *size])).collect();
    [b"vdex027\0", &numbers(&[rows.len() as u32])[..], &table, &[0; 256]].concat()
}

/// A zip file of members that are not compressed.
pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in members {
        let sizes = numbers(&[0, data.len() as u32, data.len() as u32]);
        let names = [(name.len() as u16).to_le_bytes(), [0, 0]].concat();
        let at = file.len() as u32;
        // version, flags, method, time, date
        file.extend(
            [b"PK\x03\x04", &[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &sizes, &names, name.as_bytes(), data].concat(),
        );
        let head = [b"PK\x01\x02", &[20, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &sizes, &names].concat();
        directory.extend([&head[..], &[0; 2], &[0; 8], &numbers(&[at]), name.as_bytes()].concat());
    }
    let count = (members.len() as u16).to_le_bytes();
    let end =
        [b"PK\x05\x06", &[0; 4][..], &count, &count, &numbers(&[directory.len() as u32, file.len() as u32]), &[0, 0]]
            .concat();
    [file, directory, end].concat()
}
