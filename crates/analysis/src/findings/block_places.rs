//! Blocks that one place in a program maps.
//!
//! Owns which blocks belong together: those of processes of one program, from one call stack, of one power of two in size. An
//! interpreter allocates for all its scripts from the same stack; sizes keep apart what it does for different ones.
//!
//! A program's first calls can come before the unwinding table of its file, which is made once it is mapped: their stacks end early. One
//! that names who asked, and is the inner part of one whole stack of that program and size and of no other, counts as that.

use super::allocating_stack::{AllocatingStacks, Functions};
use crate::memory::memory_blocks::Block;
use crate::processes::Processes;
use slowpath_tables::{Bytes, ProcessKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};
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
    // Also those that are not wanted: a stack that ends early may be theirs.
    let mut places: BTreeSet<AllocationPlace> = BTreeSet::new();
    let is_large = |block: &Block| block.length >= LEAST_LENGTH && !block.is_stack;
    for (number, block) in (0u32..).zip(blocks).filter(|(_, block)| is_large(block)) {
        let program = programs.entry(block.process).or_insert_with(|| processes.name(block.process).into());
        let key = (Rc::clone(program), stacks.number(block.stack), block.length.0.ilog2());
        if wanted(number, block) {
            members.entry(key.clone()).or_default().push(number);
        }
        places.insert(key);
    }
    join_cut(members, &places, stacks)
}

/// A whole stack and the place that has it.
type WholeStack = (Functions, AllocationPlace);

/// Blocks whose stacks end early go to the one place that they can belong to.
fn join_cut(
    mut members: BTreeMap<AllocationPlace, Vec<u32>>,
    places: &BTreeSet<AllocationPlace>,
    stacks: &AllocatingStacks<'_>,
) -> BTreeMap<AllocationPlace, Vec<u32>> {
    let cut = members.keys().filter_map(|place| Some((place.clone(), stacks.known_part(place.1)?)));
    let cut: Vec<(AllocationPlace, Functions)> = cut.collect();
    if cut.is_empty() {
        return members;
    }
    // In the order of their functions, those that begin alike stand together.
    let mut whole: BTreeMap<(Rc<str>, u32), Vec<WholeStack>> = BTreeMap::new();
    for place in places.iter().filter(|place| stacks.is_whole(place.1)) {
        let alike = whole.entry((Rc::clone(&place.0), place.2)).or_default();
        alike.push((stacks.get(place.1).functions(), place.clone()));
    }
    whole.values_mut().for_each(|alike| alike.sort());
    for (place, inner) in cut {
        let Some(alike) = whole.get(&(Rc::clone(&place.0), place.2)) else { continue };
        let first = alike.partition_point(|(functions, _)| *functions < inner);
        let mut fits = alike[first..].iter().take_while(|(functions, _)| functions.starts_with(&inner));
        if let (Some((_, fit)), None) = (fits.next(), fits.next())
            && members.contains_key(fit)
        {
            let blocks = members.remove(&place).unwrap_or_default();
            let joined = members.entry(fit.clone()).or_default();
            joined.extend(blocks);
            joined.sort_unstable();
        }
    }
    members
}

/// How many of the blocks of a place have a stack that ends early, where the place's own does not.
pub(crate) fn cut_reason<'a>(
    stacks: &AllocatingStacks<'_>,
    place: usize,
    blocks: impl Iterator<Item = &'a Block>,
) -> Option<String> {
    if !stacks.is_whole(place) {
        return None;
    }
    let mut of_row: HashMap<Option<u32>, bool> = HashMap::new();
    let (mut all, mut cut) = (0u64, 0u64);
    for block in blocks {
        all += 1;
        cut += u64::from(*of_row.entry(block.stack).or_insert_with(|| stacks.of_row(block.stack).is_truncated));
    }
    (cut > 0).then(|| {
        format!("the stacks of {cut} of the {all} blocks end early: they count as the only whole stack that they can be part of")
    })
}
