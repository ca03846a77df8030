//! Who asked the kernel for huge pages, and who refused them: madvise and prctl.
//!
//! Owns the replay of such advice by address, and of what processes set for themselves, which children and programs that they execute
//! inherit. Leaves what the machine gives to whom to the manifest ([`slowpath_recording::HugePages`]), and the spans that are touched
//! to [`crate::memory::huge_page_spans`]. Not seen: what was set before the recording, and by a parent of which it has no rows.

use crate::integer_hash::IntegerMap;
use crate::memory::address_ranges::{AddressRanges, OwnedRange};
use crate::memory::memory_calls::{MADV_HUGEPAGE, MADV_NOHUGEPAGE, heap_pages, old_pages, pages};
use crate::memory::memory_events::Step;
use slowpath_recording::Tables;
use slowpath_tables::{MemoryCall, MemoryCallKind, Nanos, ProcessKey};

/// Argument of a prctl that leaves huge pages to what madvise asks for (`PR_THP_DISABLE_EXCEPT_ADVISED`).
const EXCEPT_ADVISED: u32 = 2;
/// Generations of processes that a setting is looked for: more than any tree has.
const MOST_GENERATIONS: usize = 64;

/// What a program said about huge pages at an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HugePageAdvice {
    /// Nothing.
    #[default]
    None,
    /// It asked for them (`MADV_HUGEPAGE`).
    Asked,
    /// It refused them (`MADV_NOHUGEPAGE`, or prctl with `PR_SET_THP_DISABLE`).
    Refused,
}

/// What all processes said about huge pages up to a moment.
pub(crate) struct AdviceReplay<'a> {
    calls: &'a [MemoryCall],
    /// Bytes of one of the kernel's pages.
    page: u64,
    /// Ranges with advice, which is their owner.
    advised: IntegerMap<ProcessKey, AddressRanges>,
    /// Calls of mremap that have not returned, with the advice on what they move.
    moving: IntegerMap<usize, u32>,
    /// What each process set, in the order of time.
    settings: IntegerMap<ProcessKey, Vec<(Nanos, u32)>>,
    /// The parent of each process, and when it was forked.
    parents: IntegerMap<ProcessKey, (ProcessKey, Nanos)>,
}

impl<'a> AdviceReplay<'a> {
    /// Before the first call.
    pub fn new(tables: &'a Tables) -> Self {
        let mut settings: IntegerMap<ProcessKey, Vec<(Nanos, u32)>> = IntegerMap::default();
        let set = |call: &&MemoryCall| call.call == MemoryCallKind::Prctl && call.result == 0;
        for call in tables.memory_calls.iter().filter(set) {
            settings.entry(call.process()).or_default().push((call.ts + call.duration, call.argument));
        }
        settings.values_mut().for_each(|changes| changes.sort_by_key(|(ts, _)| *ts));
        let forks = tables.forks.iter().filter(|fork| !fork.thread);
        let parent = |pid, start| ProcessKey { pid, start };
        let parents = forks.map(|fork| {
            let child = parent(fork.pid, fork.start);
            (child, (parent(fork.parent_pid, fork.parent_start), fork.ts))
        });
        // Most recordings have no setting, and then nobody inherits one.
        let parents = if settings.is_empty() { IntegerMap::default() } else { parents.collect() };
        Self {
            calls: &tables.memory_calls,
            page: tables.manifest.host.page(),
            advised: IntegerMap::default(),
            moving: IntegerMap::default(),
            settings,
            parents,
        }
    }

    /// A call takes effect.
    pub fn step(&mut self, step: Step) {
        let (calls, page) = (self.calls, self.page);
        match step {
            Step::Ends(process) => _ = self.advised.remove(&process),
            // Of a child only what it maps itself is asked about.
            Step::Forks { .. } | Step::Looks(_) => {}
            Step::Begins(number) => {
                let call = &calls[number];
                match call.call {
                    MemoryCallKind::Madvise if [MADV_HUGEPAGE, MADV_NOHUGEPAGE].contains(&call.argument) => {
                        self.set(call.process(), pages(call, page), Some(call.argument));
                    }
                    MemoryCallKind::Munmap => self.set(call.process(), pages(call, page), None),
                    MemoryCallKind::Brk => self.set(call.process(), heap_pages(call, page), None),
                    MemoryCallKind::Mremap => {
                        let (from, to) = old_pages(call, page);
                        let Some(space) = self.advised.get_mut(&call.process()) else { return };
                        // Advice is of a whole mapping, and mremap moves no more than one.
                        let moved = space.take(from, to).first().map(|part| part.owner);
                        moved.into_iter().for_each(|advice| _ = self.moving.insert(number, advice));
                    }
                    _ => {}
                }
            }
            Step::Returns(number) => {
                let call = &calls[number];
                let advice = match call.call {
                    MemoryCallKind::Mmap => None,
                    MemoryCallKind::Mremap => self.moving.remove(&number),
                    _ => return,
                };
                self.set(call.process(), pages(call, page), advice);
            }
        }
    }

    fn set(&mut self, process: ProcessKey, (from, to): (u64, u64), advice: Option<u32>) {
        if advice.is_none() && !self.advised.contains_key(&process) {
            return;
        }
        let space = self.advised.entry(process).or_default();
        space.take(from, to);
        advice.into_iter().for_each(|owner| space.put(OwnedRange { from, to, owner }));
    }

    /// What holds at an address.
    pub fn at(&self, process: ProcessKey, ts: Nanos, address: u64) -> HugePageAdvice {
        let advice = self.advised.get(&process).and_then(|space| space.part_at(address)).map(|part| part.owner);
        let setting = self.setting(process, ts);
        match advice {
            Some(MADV_NOHUGEPAGE) => HugePageAdvice::Refused,
            Some(_) if setting == 0 || setting & EXCEPT_ADVISED != 0 => HugePageAdvice::Asked,
            None if setting == 0 => HugePageAdvice::None,
            _ => HugePageAdvice::Refused,
        }
    }

    /// What a process set itself, or has from its parent.
    fn setting(&self, mut process: ProcessKey, mut ts: Nanos) -> u32 {
        if self.settings.is_empty() {
            return 0;
        }
        for _ in 0..MOST_GENERATIONS {
            let before = |all: &'_ Vec<(Nanos, u32)>| all[..all.partition_point(|(set, _)| *set <= ts)].last().copied();
            let own = self.settings.get(&process).and_then(before);
            if let Some((_, setting)) = own {
                return setting;
            }
            let Some((parent, forked)) = self.parents.get(&process) else { return 0 };
            (process, ts) = (*parent, *forked);
        }
        0
    }
}
