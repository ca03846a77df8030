//! Blocks that data are copied into and copied out of again.
//!
//! Owns which. Copies of one block are laid side by side where it lives for long; else those of all blocks that one call stack
//! allocates, of one power of two in size. Each copy belongs to one block or group at most, though both ends of it may be a round trip:
//! an image, rows of which are copied into a scratch block and back. Then the one that is not needed has the copies:
//!
//! - the blocks that live for a copy each, where copies into them come before those out of them, as in nothing that is worked on: by
//!   samples of both in some blocks, or by the faults that the copy in took in most of those that are read ([`super::filled_blocks`]);
//! - else the heap of an allocator, of which the least is known, where data go back to the block that they came from;
//! - else the smaller block, and of two of one size the one that was mapped later. The saving is the same.

use super::filled_blocks::{BlockFaults, FilledBlocks};
use crate::findings::allocating_stack::{AllocatingStacks, Allocator};
use crate::findings::copying_code::Copying;
use crate::memory::memory_blocks::{Block, BlockPlace};
use crate::processes::Processes;
use slowpath_tables::{Bytes, ProcessKey};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Samples in each direction from which on there is a pattern: with fewer, where in a block they lie says little.
pub const LEAST_SAMPLES: usize = 5;

/// Part of the range that copies in reach that copies out must reach too, and the other way round. A header that is read out of a
/// block is no copy of it, nor is one half of it that is filled while the other is read.
pub const LEAST_OVERLAP: f64 = 1.0 / 3.0;

/// Blocks of a group in which copies of both directions must have been seen.
pub const LEAST_BOTH: usize = 2;

/// Part of the samples of a direction of which the other end must be known, and alike, to be one.
const MOST_OF: f64 = 0.5;

/// Where data came from and went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherEnd {
    /// Back to the memory that they came from.
    Same,
    /// Not known: no block that was mapped while recording.
    Unknown,
}

/// Copies in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopySide {
    /// Samples in user code.
    pub samples: u64,
    /// Samples in the kernel below it: faults of the copy, which other findings count, and interrupts.
    pub in_kernel: u64,
    /// Who copies, the most samples first.
    pub sites: Vec<Site>,
}

/// A call stack that copies, whichever lines it is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Site {
    /// One that has its lines: `stacks.id`.
    pub stack: Option<u32>,
    /// Samples in user code.
    pub samples: u64,
    /// Samples in the kernel below it.
    pub in_kernel: u64,
}

/// A block, or the blocks of one call stack, and the copies into and out of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    /// Program of the processes. Foreign text.
    pub program: String,
    /// Number of the stack that allocates, in [`AllocatingStacks`].
    pub stack: usize,
    /// Blocks in which copies were seen.
    pub blocks: usize,
    /// Size of the largest.
    pub length: Bytes,
    /// Whether an allocator keeps other objects in the block too: then nobody knows which of them was copied.
    pub is_heap: bool,
    /// The processes.
    pub processes: BTreeSet<ProcessKey>,
    /// Copies into it.
    pub copied_in: CopySide,
    /// Copies out of it.
    pub copied_back: CopySide,
    /// Where data came from and went to.
    pub other_end: OtherEnd,
}

/// All round trips.
pub(crate) fn round_trips(
    copies: &[Copying],
    blocks: &[Block],
    faults: BlockFaults<'_>,
    processes: &Processes,
    stacks: &mut AllocatingStacks<'_>,
) -> Vec<RoundTrip> {
    let mut search = Search { copies, blocks, faults, processes, stacks, is_taken: vec![false; copies.len()] };
    let of_blocks = search.sides_of_blocks();
    let mut found = search.of_groups(&of_blocks);
    found.extend(search.of_blocks(of_blocks));
    found
}

/// Copies in, copies out: numbers, in the order of time.
type Sides = (Vec<usize>, Vec<usize>);

/// Number of a copy, and where one of its ends lies.
type End = (usize, BlockPlace);

/// Program, call stack and power of two in size of blocks.
type BlockClass = (String, usize, u32);

struct Search<'a, 'b> {
    copies: &'a [Copying],
    blocks: &'a [Block],
    faults: BlockFaults<'a>,
    processes: &'a Processes,
    stacks: &'a mut AllocatingStacks<'b>,
    is_taken: Vec<bool>,
}

impl Search<'_, '_> {
    /// Blocks with many copies in both directions.
    fn sides_of_blocks(&self) -> BTreeMap<u32, Sides> {
        let mut sides: BTreeMap<u32, Sides> = BTreeMap::new();
        for (number, copy) in self.copies.iter().enumerate() {
            copy.to.iter().for_each(|to| sides.entry(to.block).or_default().0.push(number));
            copy.from.iter().for_each(|from| sides.entry(from.block).or_default().1.push(number));
        }
        sides.retain(|_, (into, out)| into.len().min(out.len()) >= LEAST_SAMPLES);
        sides
    }

    fn of_blocks(&mut self, sides: BTreeMap<u32, Sides>) -> Vec<RoundTrip> {
        let mut order: Vec<_> = sides.into_iter().map(|(block, sides)| (self.key(block), block, sides)).collect();
        order.sort_by_key(|(_, block, _)| {
            (!self.is_heap(*block), self.blocks[*block as usize].length, std::cmp::Reverse(*block))
        });
        order.into_iter().filter_map(|(key, _, sides)| self.trip(key, sides, |_, _| true)).collect()
    }

    /// Those of the blocks that have few copies each: not `alone`.
    fn of_groups(&mut self, alone: &BTreeMap<u32, Sides>) -> Vec<RoundTrip> {
        let mut keys: BTreeMap<u32, BlockClass> = BTreeMap::new();
        for place in self.copies.iter().flat_map(|copy| copy.to.into_iter().chain(copy.from)) {
            if !alone.contains_key(&place.block) {
                keys.entry(place.block).or_insert_with(|| self.key(place.block));
            }
        }
        let mut sides: BTreeMap<&BlockClass, Sides> = BTreeMap::new();
        for (number, copy) in self.copies.iter().enumerate() {
            let key = |end: Option<BlockPlace>| keys.get(&end?.block);
            let (to, from) = (key(copy.to), key(copy.from));
            // From one block to another of the same place: neither in nor out of them.
            if to != from {
                to.into_iter().for_each(|to| sides.entry(to).or_default().0.push(number));
                from.into_iter().for_each(|from| sides.entry(from).or_default().1.push(number));
            }
        }
        sides.retain(|_, (into, out)| into.len().min(out.len()) >= LEAST_SAMPLES);
        let mut order: Vec<(&BlockClass, Sides)> = sides.into_iter().collect();
        order.sort_by_key(|(place, _)| place.2);
        let copies = self.copies;
        let read = order.iter().flat_map(|(_, (_, out))| out).filter_map(|number| Some(copies[*number].from?.block));
        let filled = FilledBlocks::new(&read.collect(), self.faults, self.stacks);
        let sites: Vec<usize> = copies.iter().map(|copy| self.stacks.number(copy.stack)).collect();
        let trips = order.into_iter().map(|(place, sides)| {
            let all = self.mapped_at(place);
            self.trip(place.clone(), sides, |written, read| {
                let fills: HashSet<usize> = written.iter().map(|(number, _)| sites[*number]).collect();
                let is_filled = |(number, place): &End| filled.by(&fills, place.block, copies[*number].ts);
                pass_through(written, read, all) || are_most(read, is_filled)
            })
        });
        trips.flatten().collect()
    }

    fn key(&mut self, block: u32) -> BlockClass {
        let block = &self.blocks[block as usize];
        (self.processes.name(block.process), self.stacks.number(block.stack), block.length.0.max(1).ilog2())
    }

    /// How many blocks were mapped there.
    fn mapped_at(&mut self, place: &BlockClass) -> usize {
        (0..self.blocks.len() as u32).filter(|block| self.key(*block) == *place).count()
    }

    /// Whether an allocator keeps many objects in it. That of glibc maps large ones one by one, and the room for its heaps with a flag
    /// of its own (`new_heap` in `malloc/arena.c`); what others do is not known.
    fn is_heap(&mut self, block: u32) -> bool {
        let block = &self.blocks[block as usize];
        let stack = self.stacks.number(block.stack);
        self.stacks.allocator(stack).is_some_and(|allocator| block.is_room || allocator != Some(Allocator::Glibc))
    }

    /// Judges what is not taken yet of these copies, and takes it.
    fn trip(&mut self, key: BlockClass, sides: Sides, passes: impl Fn(&[End], &[End]) -> bool) -> Option<RoundTrip> {
        let (mut into, mut out) = sides;
        let free = |numbers: &mut Vec<usize>| numbers.retain(|number| !self.is_taken[*number]);
        free(&mut into);
        free(&mut out);
        let of = |numbers: &[usize]| numbers.iter().map(|number| self.copies[*number].process).collect::<BTreeSet<_>>();
        let processes: BTreeSet<ProcessKey> = of(&into).intersection(&of(&out)).copied().collect();
        into.retain(|number| processes.contains(&self.copies[*number].process));
        out.retain(|number| processes.contains(&self.copies[*number].process));
        let ends = |numbers: &[usize], end: fn(&Copying) -> Option<BlockPlace>| -> Vec<End> {
            numbers.iter().filter_map(|number| Some((*number, end(&self.copies[*number])?))).collect()
        };
        let (written, read) = (ends(&into, |copy| copy.to), ends(&out, |copy| copy.from));
        let (sources, targets) = (ends(&into, |copy| copy.from), ends(&out, |copy| copy.to));
        let blocks: BTreeSet<u32> = written.iter().chain(&read).map(|(_, place)| place.block).collect();
        if written.len().min(read.len()) < LEAST_SAMPLES
            || overlap(written_range(&written, &sources), range(&read)) < LEAST_OVERLAP
            || !passes(&written, &read)
        {
            return None;
        }
        let is_heap = blocks.iter().any(|block| self.is_heap(*block));
        // Of an allocator's heap it is not known which object it was.
        let [sources, targets] = [sources, targets].map(|ends| {
            let mut ends: Vec<u32> = ends.iter().map(|(_, place)| place.block).collect();
            ends.retain(|block| !self.is_heap(*block));
            ends
        });
        let other_end = self.other_end((&sources, into.len()), (&targets, out.len()))?;
        if is_heap && other_end == OtherEnd::Unknown {
            return None;
        }
        into.iter().chain(&out).for_each(|number| self.is_taken[*number] = true);
        let length = blocks.iter().map(|block| self.blocks[*block as usize].length).max().unwrap_or_default();
        let (copied_in, copied_back) = (self.way(&into), self.way(&out));
        let (program, stack, _) = key;
        Some(RoundTrip {
            program,
            stack,
            blocks: blocks.len(),
            length,
            is_heap,
            processes,
            copied_in,
            copied_back,
            other_end,
        })
    }

    /// Where data came from (blocks, and how many copies there are) and went to; `None` where these are two places.
    fn other_end(&mut self, sources: (&[u32], usize), targets: (&[u32], usize)) -> Option<OtherEnd> {
        let is_known = |(known, all): (&[u32], usize)| known.len() as f64 > all as f64 * MOST_OF;
        if !is_known(sources) || !is_known(targets) {
            return Some(OtherEnd::Unknown);
        }
        let (from, to): (HashSet<u32>, HashSet<u32>) =
            (sources.0.iter().copied().collect(), targets.0.iter().copied().collect());
        let within = |blocks: &[u32], others: &HashSet<u32>| {
            let within = blocks.iter().filter(|block| others.contains(block)).count();
            within as f64 > blocks.len() as f64 * MOST_OF
        };
        if within(sources.0, &to) && within(targets.0, &from) {
            return Some(OtherEnd::Same);
        }
        // Blocks that live for one copy each are met in one direction, mostly.
        let mut places: Vec<BlockClass> = from.union(&to).map(|block| self.key(*block)).collect();
        places.sort();
        places.dedup();
        let [place] = places.as_slice() else { return None };
        let both = from.intersection(&to).count();
        are_the_same(both, from.len(), to.len(), self.mapped_at(place)).then_some(OtherEnd::Same)
    }

    fn way(&mut self, numbers: &[usize]) -> CopySide {
        let mut sites: BTreeMap<usize, Site> = BTreeMap::new();
        for number in numbers {
            let copy = &self.copies[*number];
            let new = Site { stack: copy.stack, ..Site::default() };
            let site = sites.entry(self.stacks.number(copy.stack)).or_insert(new);
            let count = if copy.in_kernel { &mut site.in_kernel } else { &mut site.samples };
            *count += 1;
        }
        let mut sites: Vec<Site> = sites.into_values().collect();
        sites.sort_by_key(|site| std::cmp::Reverse((site.samples, site.in_kernel)));
        let sum = |of: fn(&Site) -> u64| sites.iter().map(of).sum();
        CopySide { samples: sum(|site| site.samples), in_kernel: sum(|site| site.in_kernel), sites }
    }
}

/// Whether blocks that are met in one direction and in the other are the same ones, and not blocks for input and blocks for output from
/// one call stack: each is met by chance, so those met in both are as many as that says, and of two kinds of blocks none.
fn are_the_same(both: usize, one: usize, other: usize, all: usize) -> bool {
    let by_chance = one as f64 * other as f64 / all.max(1) as f64;
    both >= LEAST_BOTH && both as f64 * 3.0 >= by_chance
}

/// Whether data pass through blocks, of which so many were mapped: into them first and then out of the same ones.
fn pass_through(written: &[End], read: &[End], all: usize) -> bool {
    let first = |ends: &[End]| {
        let mut first: BTreeMap<u32, usize> = BTreeMap::new();
        ends.iter().for_each(|(number, place)| _ = first.entry(place.block).or_insert(*number));
        first
    };
    let (written, read) = (first(written), first(read));
    let both = written.iter().filter_map(|(block, into)| Some((into, read.get(block)?)));
    let (both, in_order) = both.fold((0, 0), |sum, (into, out)| (sum.0 + 1, sum.1 + usize::from(into < out)));
    are_the_same(both, written.len(), read.len(), all) && in_order * 2 > both
}

/// Whether that is true of most of the blocks of these ends, and of enough of them.
fn are_most(ends: &[End], is_so: impl Fn(&End) -> bool) -> bool {
    let of = |ends: &mut dyn Iterator<Item = &End>| ends.map(|(_, place)| place.block).collect::<HashSet<u32>>().len();
    let those = of(&mut ends.iter().filter(|end| is_so(end)));
    those >= LEAST_BOTH && those as f64 > of(&mut ends.iter()) as f64 * MOST_OF
}

/// The first and the last offset that copies were seen at.
fn range(ends: &[End]) -> Option<(u64, u64)> {
    let offsets = ends.iter().map(|(_, place)| place.offset);
    Some((offsets.clone().min()?, offsets.max()?))
}

/// The same of where copies write to. A copy that goes backwards keeps that place in its register while the one that it reads from moves
/// (see [`crate::findings::copying_code`]): where all copies stay at one place, they reach as far as their sources do.
fn written_range(written: &[End], sources: &[End]) -> Option<(u64, u64)> {
    let (from, to) = range(written)?;
    match range(sources) {
        Some((first, last)) if from == to => Some((from, to + (last - first))),
        _ => Some((from, to)),
    }
}

/// What two ranges of offsets have in common, as a part of the larger.
fn overlap(one: Option<(u64, u64)>, other: Option<(u64, u64)>) -> f64 {
    let Some(((from, to), (other_from, other_to))) = one.zip(other) else { return 0.0 };
    let common = to.min(other_to).saturating_sub(from.max(other_from));
    common as f64 / (to - from).max(other_to - other_from).max(1) as f64
}
