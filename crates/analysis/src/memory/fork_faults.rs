//! Faults that a fork caused.
//!
//! Owns which they are: the first fault of a process, after a fork, in a page that it had touched before; and the first fault of a
//! child in a page that its parent had touched. A fork leaves private pages to both, for reading: whoever writes first has the page
//! copied, or, where nobody else has it any more, is given back the right to write. Shared memory and files are mapped into a child
//! again when it touches them. No memory is new then, so these faults are no cost of an allocation.
//!
//! - Calls take effect in the order of [`crate::memory::memory_events`]. What is unmapped, mapped over or given back begins anew; pages that
//!   mremap moves are the ones they were.
//! - Pages of `MADV_FREE` stay: whether a fault after it and after a fork has a new page is not known, and it counts as the fork's.
//! - A page that was only read before a fork and is written after it counts as the fork's too, though it would have been copied in
//!   any case. Faults do not tell reads from writes.
//! - What was touched before the recording, or without a recorded fault (pages beside a fault in a file, huge pages), is not
//!   known: faults in it are first touches, as elsewhere. What a call brought (`MAP_POPULATE`) is known.
//! - A child of vfork shares the address space and causes none: nothing becomes read-only. Recordings do not tell it from one of
//!   fork, so a page that has two faults with such a child between them (read, then written) counts as the fork's.

use crate::integer_hash::IntegerMap;
use crate::memory::address_ranges::{AddressRanges, OwnedRange};
use crate::memory::memory_calls::{MADV_DONTNEED, MAP_POPULATE, POPULATES, heap_pages, old_pages, pages};
use crate::memory::memory_events::{Event, MemoryEvents, Step};
use slowpath_tables::{Fault, MemoryCall, MemoryCallKind, Nanos, ProcessKey};
use std::rc::Rc;

/// The faults that forks caused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkFaults {
    /// For each row of `faults`; empty where no process forked.
    caused: Vec<bool>,
}

impl ForkFaults {
    /// Whether a fork caused the fault of this row.
    pub fn holds(&self, row: usize) -> bool {
        self.caused.get(row).copied().unwrap_or(false)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.caused.iter().filter(|caused| **caused).count() as u64
    }
}

/// Finds them. Without memory calls it is not known what lies at an address, and none is found.
pub fn follow(events: &MemoryEvents<'_>) -> ForkFaults {
    let tables = events.tables();
    let mut last_forks: IntegerMap<ProcessKey, Nanos> = IntegerMap::default();
    for fork in tables.forks.iter().filter(|fork| !fork.thread) {
        let parent = ProcessKey { pid: fork.parent_pid, start: fork.parent_start };
        let last = last_forks.entry(parent).or_default();
        *last = fork.ts.max(*last);
    }
    if last_forks.is_empty() || tables.memory_calls.is_empty() {
        return ForkFaults::default();
    }
    let page = tables.manifest.host.page();
    let mut replay = Replay { calls: &tables.memory_calls, page, last_forks, spaces: IntegerMap::default() };
    let mut caused = vec![false; tables.faults.len()];
    events.for_each(|event| match event {
        Event::Step(ts, step) => replay.step(ts, step),
        Event::Fault(number) => caused[number] = replay.fault(&tables.faults[number]),
        Event::Sample(_) => {}
    });
    ForkFaults { caused }
}

/// Pages of a process that were touched. Their owner is the number of forks that there had been by then.
#[derive(Debug, Default)]
struct Space {
    /// A child has its parent's until one of them changes them.
    touched: Rc<AddressRanges>,
    forks: u32,
}

struct Replay<'a> {
    calls: &'a [MemoryCall],
    /// Bytes of one of the kernel's pages.
    page: u64,
    /// When each process forked last: what it touches later for the first time is of no use.
    last_forks: IntegerMap<ProcessKey, Nanos>,
    spaces: IntegerMap<ProcessKey, Space>,
}

impl Replay<'_> {
    fn step(&mut self, ts: Nanos, step: Step) {
        let (calls, page) = (self.calls, self.page);
        match step {
            Step::Forks { parent, child } => self.fork(parent, child),
            Step::Ends(process) => _ = self.spaces.remove(&process),
            Step::Looks(_) => {}
            Step::Begins(number) => {
                let call = &calls[number];
                match call.call {
                    MemoryCallKind::Munmap => self.forget(call, pages(call, page)),
                    MemoryCallKind::Brk => self.forget(call, heap_pages(call, page)),
                    MemoryCallKind::Madvise if call.argument == MADV_DONTNEED => {
                        self.forget(call, pages(call, page));
                    }
                    MemoryCallKind::Madvise if POPULATES.contains(&call.argument) => {
                        self.bring(ts, call, pages(call, page));
                    }
                    MemoryCallKind::Madvise | MemoryCallKind::Mmap | MemoryCallKind::Mremap | MemoryCallKind::Prctl => {
                    }
                }
            }
            Step::Returns(number) => {
                let call = &calls[number];
                let range = pages(call, page);
                match call.call {
                    MemoryCallKind::Mmap => {
                        self.forget(call, range);
                        if call.argument & MAP_POPULATE != 0 {
                            self.bring(ts, call, range);
                        }
                    }
                    MemoryCallKind::Mremap => self.move_pages(call, old_pages(call, page), range),
                    MemoryCallKind::Munmap | MemoryCallKind::Madvise | MemoryCallKind::Brk | MemoryCallKind::Prctl => {}
                }
            }
        }
    }

    fn fork(&mut self, parent: ProcessKey, child: ProcessKey) {
        let space = self.spaces.entry(parent).or_default();
        space.forks = space.forks.saturating_add(1);
        let inherited = Space { touched: Rc::clone(&space.touched), forks: space.forks };
        self.spaces.insert(child, inherited);
    }

    /// Something else lies there now, or nothing.
    fn forget(&mut self, call: &MemoryCall, (from, to): (u64, u64)) {
        let Some(space) = self.spaces.get_mut(&call.process()) else { return };
        if space.touched.between(from, to).is_empty() {
            return;
        }
        Rc::make_mut(&mut space.touched).take(from, to);
    }

    fn is_of_use(&self, process: ProcessKey, ts: Nanos) -> bool {
        self.last_forks.get(&process).is_some_and(|last| ts <= *last)
    }

    /// A call brought pages, without recorded faults.
    fn bring(&mut self, ts: Nanos, call: &MemoryCall, (from, to): (u64, u64)) {
        if !self.is_of_use(call.process(), ts) {
            return;
        }
        let space = self.spaces.entry(call.process()).or_default();
        let touched = Rc::make_mut(&mut space.touched);
        touched.take(from, to);
        touched.join(OwnedRange { from, to, owner: space.forks });
    }

    fn move_pages(&mut self, call: &MemoryCall, (old_from, old_to): (u64, u64), (from, to): (u64, u64)) {
        let Some(space) = self.spaces.get_mut(&call.process()) else { return };
        if space.touched.between(old_from, old_to).is_empty() && space.touched.between(from, to).is_empty() {
            return;
        }
        let touched = Rc::make_mut(&mut space.touched);
        let parts = touched.take(old_from, old_to);
        touched.take(from, to);
        for part in parts {
            let at = |address: u64| from.saturating_add(address - old_from).min(to);
            touched.join(OwnedRange { from: at(part.from), to: at(part.to), ..part });
        }
    }

    fn fault(&mut self, fault: &Fault) -> bool {
        let process = fault.process();
        let is_of_use = self.is_of_use(process, fault.ts);
        let space = match self.spaces.get_mut(&process) {
            Some(space) => space,
            None if is_of_use => self.spaces.entry(process).or_default(),
            None => return false,
        };
        let from = fault.address - fault.address % self.page;
        let before = space.touched.part_at(from).map(|part| part.owner);
        let is_caused = before.is_some_and(|forks| forks < space.forks);
        if is_caused || (is_of_use && before.is_none()) {
            let touched = Rc::make_mut(&mut space.touched);
            let page = OwnedRange { from, to: from.saturating_add(self.page), owner: space.forks };
            touched.take(page.from, page.to);
            touched.join(page);
        }
        is_caused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::Tables;

    fn caused(calls: &str, rest: &str) -> Vec<bool> {
        let columns = "ts duration pid start tid call address length old_length old_address argument shrinks result";
        let tables = Tables::from_text(&format!("== memory_calls\n{columns}\n{calls}\n{rest}")).unwrap();
        let found = follow(&MemoryEvents::new(&tables));
        let rows: Vec<bool> = (0..tables.faults.len()).map(|row| found.holds(row)).collect();
        assert_eq!(found.count(), rows.iter().filter(|row| **row).count() as u64);
        rows
    }

    const BLOCK: &str = "10 1 7 1 7 mmap 0x10000 16384 - - 0x22 false 0\n";
    const FORK: &str = "== forks\nts parent_pid parent_start pid start tid thread\n100 7 1 8 100 8 false\n";

    #[test]
    fn pages_that_were_there_at_a_fork_fault_once_more_in_parent_and_child_and_others_are_new() {
        let rows = caused(
            BLOCK,
            &format!(
                "{FORK}== faults\nts pid start address kind\n20 7 1 0x10000 minor\n21 7 1 0x11000 minor\n\
                 110 7 1 0x10008 minor\n111 7 1 0x10000 minor\n112 7 1 0x12000 minor\n\
                 113 8 100 0x10000 minor\n114 8 100 0x11fff minor\n115 8 100 0x12000 minor\n116 8 100 0x11000 minor\n"
            ),
        );
        assert_eq!(rows, [false, false, true, false, false, true, true, false, false]);
    }

    #[test]
    fn a_large_page_that_was_there_at_a_fork_faults_wherever_it_is_touched() {
        let host = r#"{"kernel": "", "machine": "", "page_size": 65536, "cpus": 1, "memory_bytes": 0}"#;
        let faults = "== faults\nts pid start address kind\n20 7 1 0x10000 minor\n110 7 1 0x13000 minor\n111 7 1 0x20000 minor\n";
        let rows = caused(BLOCK, &format!("{FORK}{faults}== manifest\n{{\"host\": {host}}}\n"));
        assert_eq!(rows, [false, true, false]);
    }

    #[test]
    fn each_fork_begins_anew_and_a_thread_is_none() {
        let rows = caused(
            BLOCK,
            "== forks\nts parent_pid parent_start pid start tid thread\n30 7 1 7 1 70 true\n100 7 1 8 100 8 false\n200 7 1 9 200 9 false\n\
             == faults\nts pid start address kind\n20 7 1 0x10000 minor\n40 7 1 0x10000 minor\n110 7 1 0x10000 minor\n\
             210 7 1 0x10000 minor\n211 7 1 0x10000 minor\n212 9 200 0x10000 minor\n",
        );
        assert_eq!(rows, [false, false, true, true, false, true]);
    }

    #[test]
    fn what_is_mapped_anew_given_back_or_of_another_program_is_new_and_what_moves_is_not() {
        let calls = format!(
            "{BLOCK}120 1 7 1 7 munmap 0x10000 4096 - - 0 false 0\n121 1 7 1 7 mmap 0x10000 4096 - - 0x22 false 0\n\
             122 1 7 1 7 madvise 0x11000 4096 - - 4 false 0\n123 1 7 1 7 madvise 0x12000 4096 - - 8 false 0\n\
             124 1 7 1 7 mremap 0x50000 4096 4096 0x13000 1 false 0\n"
        );
        let faults = "== faults\nts pid start address kind\n20 7 1 0x10000 minor\n21 7 1 0x11000 minor\n22 7 1 0x12000 minor\n\
                      23 7 1 0x13000 minor\n130 7 1 0x10000 minor\n131 7 1 0x11000 minor\n132 7 1 0x12000 minor\n\
                      133 7 1 0x50000 minor\n134 8 100 0x10000 minor\n";
        let exec = "== execs\nts present pid start filename\n105 false 8 100 b\n";
        let rows = caused(&calls, &format!("{FORK}{exec}{faults}"));
        assert_eq!(rows, [false, false, false, false, false, false, true, true, false]);
    }

    #[test]
    fn the_heap_and_what_calls_bring_are_followed_too() {
        let calls = "5 1 7 1 7 brk 0x22000 8192 - - 0 false 0\n10 1 7 1 7 mmap 0x30000 4096 - - 0x8022 false 0\n\
                     110 1 7 1 7 brk 0x21000 4096 - - 0 true 0\n111 1 7 1 7 brk 0x22000 4096 - - 0 false 0\n";
        let faults = "== faults\nts pid start address kind\n20 7 1 0x20000 minor\n21 7 1 0x21000 minor\n120 7 1 0x20000 minor\n\
                      121 7 1 0x21000 minor\n122 7 1 0x30000 minor\n";
        assert_eq!(caused(calls, &format!("{FORK}{faults}")), [false, false, true, false, true]);
        // Nothing is known of addresses without memory calls.
        assert!(caused("", &format!("{FORK}{faults}")).iter().all(|caused| !caused));
    }
}
