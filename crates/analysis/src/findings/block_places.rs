//! Blocks that one place in a program maps.
//!
//! Owns which blocks belong together: those of processes of one program, from one call stack, of one power of two in size. An
//! interpreter allocates for all its scripts from the same stack; sizes keep apart what it does for different ones.

use super::allocating_stack::AllocatingStacks;
use crate::memory_blocks::Block;
use crate::processes::Processes;
use slowpath_tables::{Bytes, ProcessKey};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Least size of a block, in bytes: from here on glibc maps blocks of their own unless it has learnt not to
/// (`M_MMAP_THRESHOLD` of mallopt(3)), and musl about the same.
pub const LEAST_LENGTH: Bytes = Bytes(128 * 1024);

/// Program, number of the stack in [`AllocatingStacks`], power of two.
pub(crate) type AllocationPlace = (Rc<str>, usize, u32);

/// Numbers of the large blocks that are `wanted`, by their place; threads' stacks are nobody's.
pub(crate) fn by_place(
    blocks: &[Block],
    processes: &Processes,
    stacks: &mut AllocatingStacks<'_>,
    wanted: impl Fn(u32, &Block) -> bool,
) -> BTreeMap<AllocationPlace, Vec<u32>> {
    // Millions of rows have a program of few.
    let mut programs: HashMap<ProcessKey, Rc<str>> = HashMap::new();
    let mut members: BTreeMap<AllocationPlace, Vec<u32>> = BTreeMap::new();
    let is_candidate =
        |number: u32, block: &Block| block.length >= LEAST_LENGTH && !block.is_stack && wanted(number, block);
    for (number, block) in (0u32..).zip(blocks).filter(|(number, block)| is_candidate(*number, block)) {
        let program = programs.entry(block.process).or_insert_with(|| processes.name(block.process).into());
        let key = (Rc::clone(program), stacks.number(block.stack), block.length.0.ilog2());
        members.entry(key).or_default().push(number);
    }
    members
}
