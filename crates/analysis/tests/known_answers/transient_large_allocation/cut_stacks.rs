//! Blocks whose call stacks end early: those of a program's first calls, before its file has an unwinding table.

use super::{ALLOCATES, FRAME, MS, Program, row};
use slowpath_analysis::Finding;
use slowpath_tables::{Frame, FrameKind, Nanos, Stack};

/// Stack of the same allocation, cut behind who asked; cut inside the allocator; and a whole one of another caller of the same function.
const CUT: u32 = 13;
const CUT_INSIDE: u32 = 15;
const OTHER: u32 = 19;

fn found(stacks: &[u32]) -> Option<Finding> {
    let mut program = Program::new();
    program.0.frames.push(Frame { id: 6, kind: FrameKind::Truncated, ..program.0.frames[0].clone() });
    let chains: [&[u32]; 3] = [&[6, 1, 2, 3], &[6, 3], &[5, 1, 2, 3]];
    let mut id = 10;
    for (number, chain) in chains.iter().enumerate() {
        // The last one is called by main (stack 0).
        let mut parent = (number == 2).then_some(0);
        for frame in *chain {
            program.0.stacks.push(Stack { id, parent, frame: *frame });
            parent = Some(id);
            id += 1;
        }
    }
    for (number, stack) in (0u64..).zip(stacks) {
        program.operation(number * 33 * MS, 0x7f00_0000_0000, FRAME, Some(*stack));
    }
    // So that a few of them are a tenth of its CPU time.
    program.0.exits[0].run_time = Some(Nanos(50 * MS));
    program.found()
}

fn operations(finding: &Finding) -> u64 {
    row(finding, "operations")["operations"].as_u64().unwrap()
}

#[test]
fn a_cut_stack_counts_as_the_only_whole_one_that_it_can_be_part_of() {
    let finding = found(&[&[CUT; 2][..], &[ALLOCATES; 10]].concat()).unwrap();
    assert_eq!((operations(&finding), &finding.subject["stack"]), (12, &"main;copy_frame;malloc;mmap64".into()));
    let says =
        "the stacks of 2 of the 12 blocks end early: they count as the only whole stack that they can be part of";
    assert!(finding.reasons.iter().any(|reason| reason == says), "{:?}", finding.reasons);
    let whole = found(&[ALLOCATES; 12]).unwrap();
    assert!(!whole.reasons.iter().any(|reason| reason.contains("end early")), "{:?}", whole.reasons);
}

#[test]
fn one_that_can_be_part_of_two_or_names_nobody_counts_as_none() {
    let two = found(&[&[CUT; 2][..], &[ALLOCATES; 10], &[OTHER; 2]].concat()).unwrap();
    assert_eq!(operations(&two), 10);
    let nobody = found(&[&[CUT_INSIDE; 2][..], &[ALLOCATES; 10]].concat()).unwrap();
    assert_eq!(operations(&nobody), 10);
}
