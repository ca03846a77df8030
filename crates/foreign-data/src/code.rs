//! Files with code, and what names code.

use slowpath_symbols::audit::{Files, Mapping, Oracle};
use slowpath_symbols::startup;
use slowpath_symbols::symbolize::{Depth, Located, Options, PerfMap, Sources, symbolize};
use slowpath_symbols::unwind_table::UnwindTable;
use slowpath_symbols::walk::{Code, Registers, walk};
use slowpath_tables::{Bytes, Frame, FrameKind};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// An ELF file: everything that is read of it.
pub fn elf(bytes: &[u8]) {
    table(bytes);
    oracle(bytes);
    names(bytes);
    slowpath_layout::foreign::elf(bytes);
    slowpath_fix::dynamic_symbols::foreign(bytes);
}

/// Frame descriptions inside a file that is otherwise sound.
pub fn unwind_entries(bytes: &[u8]) {
    let file = elf_with(bytes);
    table(&file);
    oracle(&file);
    slowpath_layout::foreign::elf(&file);
}

/// The head of a program.
pub fn startup_file(bytes: &[u8]) {
    startup::parse(bytes);
}

/// A perf map, and names of addresses in it.
pub fn perf_map(bytes: &[u8]) {
    let map = PerfMap::parse(bytes);
    for address in [0, 1, 0x1000, 0x7f00_0000_0000, u64::MAX - 1, u64::MAX] {
        map.name_of(address);
    }
}

/// A table in which every page finds its rows, and a walk with it.
fn table(bytes: &[u8]) {
    let Ok(table) = UnwindTable::of_elf(bytes) else { return };
    assert_eq!(table.pages.last().copied(), u32::try_from(table.rows.len()).ok(), "the last page ends with the rows");
    assert!(table.pages.is_sorted(), "pages follow each other");
    let first = u64::from(table.first_page) * 4096;
    for page in table.pages.iter().zip(table.pages.iter().skip(1)).take(64) {
        let rows = &table.rows[*page.0 as usize..*page.1 as usize];
        assert!(rows.is_sorted_by_key(|row| row.at), "a page is sorted");
    }
    for offset in [0, first, first + 1, first + 4096, u64::MAX] {
        table.lookup(offset);
    }
    let start = Registers { ip: first, sp: 0x7000, bp: 0x7100 };
    walk(start, |address| Code::Table(&table, address), |address| Some(address.wrapping_mul(0x9e37_79b9)));
}

/// The second opinion on stacks, with the file mapped at a fixed place.
fn oracle(bytes: &[u8]) {
    let mapping = Mapping { path: PathBuf::from("/x"), addresses: 0x5000_0000..0x5100_0000, offset: 0 };
    let mut files = Files::default();
    files.learn(&mapping.path, || Some(bytes.to_vec()));
    let mut oracle = Oracle::with(std::slice::from_ref(&mapping), &files);
    let stack: Vec<u8> = (0..64u64).flat_map(|word| (0x5000_0000 + word * 0x40).to_le_bytes()).collect();
    oracle.unwind(Registers { ip: 0x5000_1010, sp: 0x7000, bp: 0x7040 }, &stack);
}

/// Sections, build-id, and names of frames: the file is opened by its path, as after a recording.
fn names(bytes: &[u8]) {
    let Ok(descriptor) = nix::sys::memfd::memfd_create(c"elf", nix::sys::memfd::MFdFlags::MFD_CLOEXEC) else { return };
    let mut file = std::fs::File::from(descriptor);
    if file.write_all(bytes).is_err() {
        return;
    }
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    slowpath_capture::foreign::sections(&file);
    let located = Located { path, ..Located::default() };
    let frame = |(id, offset): (u32, u64)| Frame {
        id,
        kind: FrameKind::File,
        dev: Some(1),
        ino: Some(1),
        offset: Some(Bytes(offset)),
        pid: None,
        start: None,
        address: None,
        truncation: None,
    };
    let frames: Vec<Frame> = (0..).zip([0, 0x40, 0x1000, 0x1010, 0x1139, 0x2000, u64::MAX]).map(frame).collect();
    let sources =
        Sources { file: &|_| Some(located.clone()), kernel: None, this_boot: true, perf_maps: &|_, _| Vec::new() };
    for depth in [Depth::Inlined, Depth::Names] {
        let options = Options { depth, debug_dirs: Vec::new(), ..Options::default() };
        let rows = symbolize(&frames, &sources, &options);
        assert!(rows.len() >= frames.len(), "every frame has a row");
    }
}

/// Bytes before the frame descriptions: headers, and code.
const BEFORE: u64 = 0x2000;

/// A file for x86-64 of one executable segment and one section `.eh_frame`.
fn elf_with(frames: &[u8]) -> Vec<u8> {
    const NAMES: &[u8] = b"\0.eh_frame\0.shstrtab\0";
    let sections = BEFORE + frames.len() as u64 + NAMES.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    let half = |file: &mut Vec<u8>, values: &[u16]| values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    let word = |file: &mut Vec<u8>, values: &[u32]| values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    let long = |file: &mut Vec<u8>, values: &[u64]| values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    // ET_DYN for x86-64; entry, program headers, section headers; then sizes and numbers (elf(5)).
    half(&mut file, &[3, 62]);
    word(&mut file, &[1]);
    long(&mut file, &[0x1000, 64, sections]);
    word(&mut file, &[0]);
    half(&mut file, &[64, 56, 1, 64, 3, 2]);
    // PT_LOAD, readable and executable: all of the file.
    word(&mut file, &[1, 5]);
    long(&mut file, &[0, 0, 0, sections, sections, 0x1000]);
    file.resize(BEFORE as usize, 0xcc);
    file.extend(frames);
    file.extend(NAMES);
    file.resize(file.len() + 64, 0);
    // Name, type, flags, address, offset, size, link, info, alignment, size of entries.
    for (name, kind, flags, at, size) in
        [(1, 1, 2, BEFORE, frames.len() as u64), (11, 3, 0, BEFORE + frames.len() as u64, NAMES.len() as u64)]
    {
        word(&mut file, &[name, kind]);
        long(&mut file, &[flags, if flags == 2 { at } else { 0 }, at, size]);
        word(&mut file, &[0, 0]);
        long(&mut file, &[1, 0]);
    }
    file
}
