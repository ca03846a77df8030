//! That the compiled programs have a form that Linux 6.1 takes.
//!
//! Its verifier walks over the instructions of a program before it looks at any (`check_cfg` in kernel/bpf/verifier.c). A jump may
//! lead back to where the walk is still in; an instruction that is no jump may not run on into such a place. Clang makes that form of a
//! loop now and then, later kernels take it, and of such a program 6.1 says `back-edge from insn`: nothing can be recorded. The kernels
//! of `bench/accept/kernels` show it as well, in minutes.

use crate::probes::ALL;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// Bytes of an instruction.
const INSTRUCTION: usize = 8;
/// Classes and operations of jumps (include/uapi/linux/bpf.h).
const BPF_JMP: u8 = 0x05;
const BPF_JMP32: u8 = 0x06;
const BPF_JA: u8 = 0x00;
const BPF_CALL: u8 = 0x80;
const BPF_EXIT: u8 = 0x90;

/// Where an instruction leads to, in the order in which the verifier goes there, and whether it may lead back.
fn edges(code: &[[u8; INSTRUCTION]], at: usize) -> Vec<(usize, bool)> {
    let [operation, _, low, high, ..] = code[at];
    let target = at.wrapping_add_signed(isize::from(i16::from_le_bytes([low, high])) + 1);
    match (operation & 7, operation & 0xf0) {
        (BPF_JMP, BPF_EXIT) => Vec::new(),
        (BPF_JMP, BPF_JA) => vec![(target, true)],
        (BPF_JMP, BPF_CALL) => vec![(at + 1, false)],
        (BPF_JMP | BPF_JMP32, _) => vec![(at + 1, true), (target, true)],
        _ => vec![(at + 1, false)],
    }
}

/// The first instruction of a function that the verifier of Linux 6.1 refuses, and the one that it runs on into.
fn refused(code: &[[u8; INSTRUCTION]]) -> Option<(usize, usize)> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Unseen,
        Entered,
        Left,
    }
    let mut states = vec![State::Unseen; code.len()];
    let mut path = vec![(0, 0)];
    while let Some((at, edge)) = path.last_mut() {
        states[*at] = State::Entered;
        let Some((to, may_lead_back)) = edges(code, *at).get(*edge).copied() else {
            states[*at] = State::Left;
            path.pop();
            continue;
        };
        *edge += 1;
        match states[to] {
            State::Unseen => path.push((to, 0)),
            State::Entered if !may_lead_back => return Some((*at, to)),
            State::Entered | State::Left => {}
        }
    }
    None
}

/// The functions of an object, by name.
fn functions(bytes: &[u8]) -> Vec<(String, Vec<[u8; INSTRUCTION]>)> {
    let object = object::File::parse(bytes).unwrap();
    let of_symbol = |symbol: object::Symbol<'_, '_>| {
        let section = object.section_by_index(symbol.section_index()?).ok()?;
        let from = usize::try_from(symbol.address()).ok()?;
        let code = section.data().ok()?.get(from..from + usize::try_from(symbol.size()).ok()?)?;
        Some((symbol.name().ok()?.to_owned(), code.as_chunks().0.to_vec()))
    };
    object
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .filter_map(of_symbol)
        .collect()
}

#[test]
fn no_program_runs_on_into_a_loop_that_it_is_in() {
    let mut looked_at = 0;
    for (probe, object) in
        ALL.iter().flat_map(|compiled| compiled.objects().map(|object| (compiled.probe.name, object)))
    {
        for (function, code) in functions(object) {
            assert_eq!(
                refused(&code),
                None,
                "{function} of {probe}: Linux 6.1 refuses it; write the loop with bpf_loop"
            );
            looked_at += 1;
        }
    }
    assert!(looked_at > 50, "{looked_at} functions");
}

#[test]
fn an_instruction_that_runs_on_into_its_loop_is_refused_and_a_jump_back_is_not() {
    let [ends, goes_on] = [[BPF_JMP | BPF_EXIT, 0, 0, 0, 0, 0, 0, 0], [0xb7, 0, 0, 0, 0, 0, 0, 0]];
    let jump = |operation: u8, by: i16| {
        let [low, high] = by.to_le_bytes();
        [BPF_JMP | operation, 0, low, high, 0, 0, 0, 0]
    };
    let equal = 0x10;
    assert_eq!(refused(&[goes_on, jump(equal, -2), ends]), None);
    assert_eq!(refused(&[jump(BPF_JA, 1), goes_on, jump(equal, -2), ends]), Some((1, 2)));
}
