//! Releases that belong together.
//!
//! Owns which: those of processes of one program and of one kind. When an allocator gives memory back is its own policy, and
//! which `free` happens to cross its threshold is chance, so all releases of an allocator are one group. Where the program
//! itself gives memory back, each call stack is a place of its own.

use crate::findings::allocating_stack::{AllocatingStacks, Allocator};
use crate::memory::released_pages::{Release, ReleaseKind};
use crate::processes::Processes;
use slowpath_tables::{Nanos, ProcessKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Oscillations from which on a pattern is one: fewer can be phases of a program, after each of which memory is rightly given
/// back.
pub const LEAST_OPERATIONS: usize = 8;

/// Who decides when memory is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MemoryManager {
    /// An allocator of a library.
    Allocator(Option<Allocator>),
    /// The program, at this call stack.
    Stack(usize),
}

/// Memory that is given back and touched again, over and over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Churn {
    /// Program of the processes. Foreign text.
    pub program: String,
    /// How it is given back.
    pub kind: ReleaseKind,
    /// Who decides that.
    pub place: MemoryManager,
    /// The stacks of the releases with the time that each costs, the most costly first; never empty.
    pub stacks: Vec<(usize, Nanos)>,
    /// Releases of which pages came back: numbers, in their order.
    pub operations: Vec<u32>,
    /// Their processes.
    pub processes: BTreeSet<ProcessKey>,
}

/// What releases of a group have in common: program, kind, who decides.
type Key = (Rc<str>, ReleaseKind, MemoryManager);

/// The groups in which that happens again and again.
pub(crate) fn groups(releases: &[Release], processes: &Processes, stacks: &mut AllocatingStacks<'_>) -> Vec<Churn> {
    // Millions of rows have a program of few.
    let mut programs: HashMap<ProcessKey, Rc<str>> = HashMap::new();
    let mut members: BTreeMap<Key, Vec<(u32, usize)>> = BTreeMap::new();
    for (number, release) in (0u32..).zip(releases).filter(|(_, release)| release.faults > 0) {
        let program = programs.entry(release.process).or_insert_with(|| processes.name(release.process).into());
        let stack = stacks.number(release.stack);
        let place = stacks.allocator(stack).map_or(MemoryManager::Stack(stack), MemoryManager::Allocator);
        members.entry((Rc::clone(program), release.kind, place)).or_default().push((number, stack));
    }
    members.retain(|_, members| members.len() >= LEAST_OPERATIONS);
    let churn = |((program, kind, place), members): (Key, Vec<(u32, usize)>)| {
        let mut times: BTreeMap<usize, Nanos> = BTreeMap::new();
        for (number, stack) in &members {
            let release = &releases[*number as usize];
            *times.entry(*stack).or_default() += release.time();
        }
        let mut stacks: Vec<(usize, Nanos)> = times.into_iter().collect();
        stacks.sort_by_key(|(stack, time)| (std::cmp::Reverse(*time), *stack));
        let operations: Vec<u32> = members.into_iter().map(|(number, _)| number).collect();
        let processes = operations.iter().map(|number| releases[*number as usize].process).collect();
        Churn { program: program.to_string(), kind, place, stacks, operations, processes }
    };
    members.into_iter().map(churn).collect()
}
