//! Any bytes give a table or an error.

use proptest::prelude::*;
use slowpath_symbols::unwind_table::{UnwindTable, UnwindTableError};
use std::sync::OnceLock;

/// A small real file: this machine's dynamic loader; else none, and mutations begin from nothing.
fn real() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| std::fs::read("/lib64/ld-linux-x86-64.so.2").unwrap_or_default())
}

/// Every page begins with a row, rows rise within a page, and the index is whole.
fn sound(table: &UnwindTable) {
    assert_eq!(table.pages.first(), Some(&0));
    assert_eq!(table.pages.last().map(|&last| last as usize), Some(table.rows.len()));
    for page in table.pages.windows(2) {
        let rows = &table.rows[page[0] as usize..page[1] as usize];
        assert_eq!(rows[0].at, 0);
        assert!(rows.windows(2).all(|two| two[0].at < two[1].at && two[1].at < 4096), "{rows:?}");
    }
}

/// A file of one executable segment that covers it all, with `.eh_frame` reached through `PT_GNU_EH_FRAME`.
fn wrapped(frames: &[u8]) -> Vec<u8> {
    let mut file = vec![0u8; 64 + 2 * 56];
    file[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    file[16..20].copy_from_slice(&[3, 0, 62, 0]);
    file[32..40].copy_from_slice(&64u64.to_le_bytes());
    file[52..58].copy_from_slice(&[64, 0, 56, 0, 2, 0]);
    let header = file.len() as u64;
    // Version 1, a pointer to .eh_frame relative to itself, no table.
    file.extend([1, 0x1b, 0xff, 0xff]);
    file.extend(4u32.to_le_bytes());
    file.extend(frames);
    let size = (file.len() + 8192) as u64;
    file.resize(size as usize, 0xcc);
    let mut segment = |at: usize, kind: u32, offset: u64, size: u64| {
        file[at..at + 4].copy_from_slice(&kind.to_le_bytes());
        file[at + 4..at + 8].copy_from_slice(&5u32.to_le_bytes());
        for (field, value) in [(8, offset), (16, offset), (32, size), (40, size)] {
            file[at + field..at + field + 8].copy_from_slice(&value.to_le_bytes());
        }
    };
    segment(64, 1, 0, size);
    segment(64 + 56, 0x6474_e550, header, 8);
    file
}

/// A CIE of x86-64, an FDE for 256 bytes at 4096 with these instructions, and the end.
fn described(instructions: &[u8]) -> Vec<u8> {
    let entry = |body: &[u8]| {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(8) + 4, 0);
        [&(body.len() as u32).to_le_bytes(), &body[..]].concat()
    };
    // Version 1, "zR", factors 1 and -8, return address 16, absolute pointers of 8 bytes; CFA rsp + 8, ra at CFA - 8.
    let cie = entry(&[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1]);
    let pointer = (cie.len() + 4) as u32;
    let fde = [&pointer.to_le_bytes()[..], &4096u64.to_le_bytes(), &256u64.to_le_bytes(), &[0], instructions].concat();
    [cie, entry(&fde), vec![0; 4]].concat()
}

#[test]
fn rows_of_instructions_written_by_hand() {
    use slowpath_symbols::unwind_table::{CfaRule as C, FramePointerRule as F};
    let at = |table: &UnwindTable, offset: u64| {
        let row = table.lookup(offset);
        (row.cfa_rule(), row.cfa_offset, row.frame_pointer_rule(), row.frame_pointer_offset)
    };
    let of = |instructions: &[u8]| UnwindTable::of_elf(&wrapped(&described(instructions))).unwrap();

    // advance 1; CFA + 16; rbp at CFA - 16; advance 3; CFA by rbp; remember; advance 16; CFA rsp + 8; advance 1; restore.
    let table = of(&[0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x50, 0x0c, 7, 8, 0xc6, 0x41, 0x0b]);
    sound(&table);
    let unknown = (C::Unknown, 0, F::Same, 0);
    assert_eq!(at(&table, 4095), unknown);
    assert_eq!(at(&table, 4096), (C::StackPointer, 1, F::Same, 0));
    assert_eq!(at(&table, 4097), (C::StackPointer, 2, F::AtCfa, -2));
    assert_eq!(at(&table, 4100), (C::FramePointer, 2, F::AtCfa, -2));
    assert_eq!(at(&table, 4116), (C::StackPointer, 1, F::Same, 0));
    assert_eq!(at(&table, 4117), (C::FramePointer, 2, F::AtCfa, -2));
    assert_eq!(at(&table, 4351), (C::FramePointer, 2, F::AtCfa, -2));
    assert_eq!(at(&table, 4352), unknown);

    // A realigned stack: CFA in memory at rbp - 8, rbp at rbp + 0; then the frame on r10.
    let table = of(&[0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0, 0x41, 0x0c, 10, 0]);
    assert_eq!(at(&table, 4096), (C::AtFramePointer, -1, F::AtFramePointer, 0));
    assert_eq!(at(&table, 4097).0, C::Unsupported);

    // An undefined return address; one saved elsewhere; CFA by an unknown expression; an undefined rbp.
    assert_eq!(at(&of(&[0x07, 16]), 4096).0, C::Outermost);
    assert_eq!(at(&of(&[0x90, 2]), 4096).0, C::Unsupported);
    assert_eq!(at(&of(&[0x0f, 2, 0x77, 8]), 4096).0, C::Unsupported);
    assert_eq!(at(&of(&[0x07, 6]), 4096), (C::StackPointer, 1, F::Unknown, 0));

    // The linkage table with the usual threshold is one rule; with another one, rows of their own.
    let expression = |literal: u8| [0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, literal, 0x2a, 0x33, 0x24, 0x22];
    assert_eq!(at(&of(&expression(0x3b)), 4200), (C::LinkageTable, 0, F::Same, 0));
    let table = of(&expression(0x39));
    sound(&table);
    for offset in 4096..4352 {
        assert_eq!(at(&table, offset), (C::StackPointer, if offset % 16 >= 9 { 2 } else { 1 }, F::Same, 0));
    }
}

#[test]
fn where_a_frame_becomes_a_handlers_it_is_not_followed() {
    use slowpath_symbols::unwind_table::CfaRule as C;
    let saved = [0x80, 9, 0x81, 8];
    // CFA rbp + 16, rbp saved; rax and rdx saved; advance 100; remember; CFA rcx + 8; advance 3; CFA by rsp; advance 5; restore.
    let ends = [0x02, 100, 0x0a, 0x0c, 2, 8, 0x43, 0x0d, 7, 0x45, 0x0b];
    let frame = [0x0c, 6, 16, 0x86, 2];
    let mut file = wrapped(&described(&[&frame[..], &saved, &ends].concat()));
    // Calls of what stands at 4096 + 200.
    for at in [10, 50, 80] {
        let distance: i32 = 200 - (at + 5);
        file[4096 + at as usize] = 0xe8;
        file[4097 + at as usize..4101 + at as usize].copy_from_slice(&distance.to_le_bytes());
    }
    let table = UnwindTable::of_elf(&file).unwrap();
    sound(&table);
    let cfa = |table: &UnwindTable, at: u64| table.lookup(4096 + at).cfa_rule();
    for (at, rule) in [
        (50, C::FramePointer),
        (51, C::HandingOver),
        (54, C::HandingOver),
        (55, C::HandsOver),
        (99, C::HandsOver),
        (107, C::HandsOver),
        (108, C::FramePointer),
        (255, C::FramePointer),
    ] {
        assert_eq!(cfa(&table, at), rule, "at {at}");
    }
    // A function that does not give a handler its values is believed.
    let other = UnwindTable::of_elf(&wrapped(&described(&[&frame[..], &ends].concat()))).unwrap();
    assert_eq!([99, 100, 103].map(|at| cfa(&other, at)), [C::FramePointer, C::Unsupported, C::StackPointer]);
}

#[test]
fn what_is_no_program_for_this_machine_is_told_apart() {
    let mut file = wrapped(&described(&[]));
    file[18] = 243;
    assert!(matches!(UnwindTable::of_elf(&file), Err(UnwindTableError::Architecture { machine: 243, bits: 64 })));
    file[4] = 1;
    assert!(matches!(UnwindTable::of_elf(&file), Err(UnwindTableError::Architecture { machine: 243, bits: 32 })));
    assert!(matches!(UnwindTable::of_elf(b"#!/bin/sh\n"), Err(UnwindTableError::NotElf(_))));
    assert!(matches!(UnwindTable::of_elf(&wrapped(&[0; 4])), Err(UnwindTableError::NoUnwindInformation)));
}

#[test]
fn a_trampoline_that_nothing_describes_is_found_between_functions() {
    use slowpath_symbols::unwind_table::CfaRule;
    let mut file = wrapped(&described(&[]));
    file[6001..6010].copy_from_slice(&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05]);
    let table = UnwindTable::of_elf(&file).unwrap();
    sound(&table);
    let found: Vec<_> =
        (0..file.len() as u64).filter(|at| table.lookup(*at).cfa_rule() == CfaRule::SignalFrame).collect();
    assert_eq!(found, (6000..6010).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_frames_give_a_sound_table_or_an_error(frames in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(table) = UnwindTable::of_elf(&wrapped(&frames)) {
            sound(&table);
        }
    }

    #[test]
    fn any_instructions_give_a_sound_table(instructions in prop::collection::vec(any::<u8>(), 0..100)) {
        sound(&UnwindTable::of_elf(&wrapped(&described(&instructions))).unwrap());
    }

    #[test]
    fn any_bytes_and_any_damaged_headers_give_an_answer(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((0usize..400, any::<u8>()), 1..8),
    ) {
        let _ = UnwindTable::of_elf(&bytes);
        let mut file = wrapped(&described(&[0x41, 0x0e, 16]));
        for (at, byte) in changes {
            file[at] = byte;
        }
        if let Ok(table) = UnwindTable::of_elf(&file) {
            sound(&table);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_library_gives_a_sound_table_or_an_error(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..300),
        near_the_header in prop::collection::vec((0usize..1024, any::<u8>()), 0..3),
        length in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut file = real().to_vec();
        if file.is_empty() {
            return Ok(());
        }
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        for (at, byte) in near_the_header {
            file[at] = byte;
        }
        if cut {
            file.truncate(length.index(file.len()));
        }
        if let Ok(table) = UnwindTable::of_elf(&file) {
            sound(&table);
        }
    }
}
