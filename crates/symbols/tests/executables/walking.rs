//! Walks over tables and memory written by hand: every way from one frame to the next, and every end.

use slowpath_symbols::unwind_table::{CfaRule as C, FramePointerRule as F, Row, UnwindTable};
use slowpath_symbols::walk::{Code, FRAME_POINTER_REACH, MAX_FRAMES, Registers, Walk, WalkEnd, walk};
use std::collections::HashMap;

/// The table's code stands here.
const CODE: u64 = 0x40_0000;
/// Executable, of no file.
const GENERATED: u64 = 0x70_0000;
/// Executable, of a file without a table.
const LATE: u64 = 0x60_0000;
const STACK: u64 = 0x7ff0_0000;

fn row(at: u16, cfa: C, cfa_offset: i16, pointer: F, frame_pointer_offset: i16) -> Row {
    Row { at, cfa: cfa as u8, frame_pointer: pointer as u8, cfa_offset, frame_pointer_offset }
}

/// One page of functions of 256 bytes each.
fn table() -> UnwindTable {
    let rows = vec![
        row(0, C::Unknown, 0, F::Same, 0),
        row(0x100, C::StackPointer, 1, F::Same, 0),
        row(0x200, C::StackPointer, 4, F::AtCfa, -2),
        row(0x300, C::FramePointer, 2, F::AtCfa, -2),
        row(0x400, C::AtFramePointer, -1, F::AtFramePointer, 0),
        row(0x500, C::SignalFrame, 0, F::Same, 0),
        row(0x600, C::Outermost, 0, F::Same, 0),
        row(0x700, C::Unsupported, 0, F::Same, 0),
        row(0x800, C::LinkageTable, 0, F::Same, 0),
        row(0x900, C::StackPointer, 1, F::Unknown, 0),
        row(0xa00, C::StackPointer, 0, F::Same, 0),
        row(0xb00, C::HandsOver, 0, F::Same, 0),
        row(0xc00, C::HandingOver, 2, F::Unknown, 0),
    ];
    UnwindTable { first_page: 3, pages: vec![0, rows.len() as u32], rows }
}

fn walked(ip: u64, sp: u64, bp: u64, memory: &[(u64, u64)]) -> Walk {
    let table = table();
    let memory: HashMap<u64, u64> = memory.iter().copied().collect();
    let code = |address| match address {
        CODE..0x40_1000 => Code::Table(&table, address - CODE + 0x3000),
        GENERATED..0x70_1000 => Code::Generated,
        LATE..0x60_1000 => Code::NoTable,
        _ => Code::NotExecutable,
    };
    walk(Registers { ip, sp, bp }, code, |address| memory.get(&address).copied())
}

#[test]
fn every_rule_leads_to_its_caller() {
    let s = STACK;
    let walk = walked(
        CODE + 0x810,
        s,
        s + 0x60,
        &[
            // The linkage table at the start of an entry: the return address on top.
            (s, CODE + 0x100),
            // Looked up by one less it is 0xff, of which nothing is known: a frame-pointer step.
            (s + 0x60, s + 0x100),
            (s + 0x68, CODE + 0x210),
            // CFA = sp + 32, rbp kept.
            (s + 0x70 + 16, s + 0x200),
            (s + 0x70 + 24, CODE + 0x310),
            // CFA = rbp + 16.
            (s + 0x200, s + 0x300),
            (s + 0x208, CODE + 0x410),
            // The CFA stands at rbp - 8, rbp at rbp.
            (s + 0x2f8, s + 0x400),
            (s + 0x3f8, CODE + 0x510),
            (s + 0x300, 77),
            // A signal on a stack of its own: back down the stack, rip as it is.
            (s + 0x400 + 168, CODE + 0x600),
            (s + 0x400 + 160, s - 0x8000),
            (s + 0x400 + 120, 99),
        ],
    );
    let frames = [0x810, 0x100, 0x210, 0x310, 0x410, 0x510, 0x600].map(|at| CODE + at);
    assert_eq!(walk, Walk { frames: frames.into(), end: WalkEnd::Outermost });
}

#[test]
fn the_linkage_table_has_pushed_one_word_more_behind_eleven_bytes() {
    let memory = [(STACK, CODE + 0x701), (STACK + 8, CODE + 0x601)];
    for (at, caller, end) in [(0x80a, 0x701, WalkEnd::BadRule), (0x80b, 0x601, WalkEnd::Outermost)] {
        let frames = vec![CODE + at, CODE + caller];
        assert_eq!(walked(CODE + at, STACK, 0, &memory), Walk { frames, end });
    }
}

#[test]
fn a_caller_is_looked_up_by_the_byte_before_and_what_was_interrupted_as_it_is() {
    // Return address 0x600 belongs to 0x5ff, the trampoline; interrupted at 0x600 it is the outermost.
    let memory = [(STACK, CODE + 0x600), (STACK + 8 + 168, CODE + 0x600), (STACK + 8 + 160, 1), (STACK + 8 + 120, 2)];
    let frames = vec![CODE + 0x100, CODE + 0x600, CODE + 0x600];
    assert_eq!(walked(CODE + 0x100, STACK, 0, &memory), Walk { frames, end: WalkEnd::Outermost });
}

#[test]
fn a_walk_says_how_it_ended() {
    let end = |ip, bp, memory: &[(u64, u64)]| walked(ip, STACK, bp, memory).end;
    assert_eq!(end(CODE + 0x100, 0, &[(STACK, 0)]), WalkEnd::Outermost);
    assert_eq!(end(CODE + 0x100, 0, &[]), WalkEnd::Unreadable);
    assert_eq!(end(CODE + 0x500, 0, &[]), WalkEnd::Unreadable);
    assert_eq!(end(CODE + 0x700, 0, &[]), WalkEnd::BadRule);
    // A frame that is not above the last one.
    assert_eq!(end(CODE + 0xa00, 0, &[]), WalkEnd::BadRule);
    assert_eq!(end(CODE + 0x300, STACK - 16, &[]), WalkEnd::BadRule);
    // rbp lost, and then needed.
    assert_eq!(end(CODE + 0x900, STACK, &[(STACK, CODE + 0x310)]), WalkEnd::BadRule);
    // Nothing executable there.
    assert_eq!(end(1, 0, &[]), WalkEnd::NoTable);
    assert_eq!(end(CODE + 0xb00, 0, &[(STACK, CODE + 0x310)]), WalkEnd::HandsOver);
    // A file's code uses the frame pointer for other things, whether its table is there or not.
    assert_eq!(end(LATE, STACK, &[(STACK, 0), (STACK + 8, CODE + 0x601)]), WalkEnd::NoTable);
}

#[test]
fn a_return_address_that_stands_once_more_above_is_a_handlers() {
    let frames = |above: &[u64]| {
        let words = [&[0, CODE + 0x601][..], above].concat();
        let memory: Vec<_> = words.iter().enumerate().map(|(at, word)| (STACK + 8 * at as u64, *word)).collect();
        let walk = walked(CODE + 0xc10, STACK - 0x100, STACK, &memory);
        (walk.frames.len(), walk.end)
    };
    // Looked up by one less, this is the trampoline of a signal, of which nothing can be read.
    assert_eq!(frames(&[1, 2, 3]), (2, WalkEnd::Outermost));
    assert_eq!(frames(&[1, CODE + 0x601, 3]), (1, WalkEnd::HandsOver));
    assert_eq!(frames(&[7; 4096]), (1, WalkEnd::HandsOver), "it could stand farther above");
}

#[test]
fn at_the_border_of_a_function_without_a_table_its_caller_is_found_by_the_instructions() {
    // A word of code from the byte before the instruction on.
    let callers = |ip: u64, code: [u8; 8], words: &[(u64, u64)]| {
        let memory = [&[(ip - 1, u64::from_le_bytes(code))], words].concat();
        walked(ip, STACK, STACK + 0x100, &memory).frames[1..].to_vec()
    };
    let at = GENERATED + 0x10;
    let caller = CODE + 0x601;
    let top = [(STACK, caller)];
    assert_eq!(callers(at, [0x90, 0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x90], &top), [caller], "push %rbp");
    assert_eq!(callers(at, [0x5d, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90], &top), [caller], "ret");
    let second = [(STACK, 1), (STACK + 8, caller)];
    for copies in [[0x89, 0xe5], [0x8b, 0xec]] {
        let code = [0x55, 0x48, copies[0], copies[1], 0x90, 0x90, 0x90, 0x90];
        assert_eq!(callers(at, code, &second), [caller], "mov %rsp, %rbp");
    }
    // Elsewhere, and where no caller stands.
    assert_eq!(callers(at, [0x90; 8], &top), [0; 0]);
    assert_eq!(callers(at, [0x5d, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90], &[(STACK, 5)]), [0; 0]);
}

#[test]
fn a_frame_pointer_is_believed_only_when_it_can_be_one() {
    let returns = |bp: u64, address: u64| {
        let memory = [(bp, 0), (bp.wrapping_add(8), address)];
        walked(GENERATED, STACK, bp, &memory).frames.len() == 2
    };
    assert!(returns(STACK + 8, GENERATED + 1));
    assert!(returns(STACK + FRAME_POINTER_REACH - 8, CODE + 0x701));
    assert!(!returns(STACK + FRAME_POINTER_REACH, GENERATED + 1), "too far");
    assert!(returns(STACK, GENERATED + 1), "a function without locals");
    assert!(!returns(STACK - 8, GENERATED + 1), "below the stack pointer");
    assert!(!returns(STACK + 12, GENERATED + 1), "not aligned");
    assert!(!returns(STACK + 8, 5), "no code");
    assert!(!returns(STACK + 8, 0), "no code");
    assert_eq!(walked(GENERATED, STACK, STACK + 8, &[]).end, WalkEnd::NoTable);
}

#[test]
fn a_stack_is_cut_after_the_last_frame_that_a_record_holds() {
    let memory: Vec<_> = (0..1000).map(|at| (STACK + 8 * at, CODE + 0x110)).collect();
    let walk = walked(CODE + 0x110, STACK, 0, &memory);
    assert_eq!((walk.frames.len(), walk.end), (MAX_FRAMES, WalkEnd::TooDeep));
    // One that ends with the last frame is whole.
    let walk = walked(CODE + 0x110, STACK + 8 * (1000 - 126), 0, &[&memory[..], &[(STACK + 8 * 1000, 0)]].concat());
    assert_eq!((walk.frames.len(), walk.end), (MAX_FRAMES, WalkEnd::Outermost));
}
