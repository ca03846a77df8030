//! Pages that a process gave back to the kernel and touched again.
//!
//! Owns the replay of `memory_calls` by page, for memory that stays the process's: the heap below and above its end (brk), and
//! ranges of which advice gave the pages back. A *release* is one such call that took pages which had been touched. A fault in
//! a page that a release took is that release's, the first one after it. Leaves what that costs, and whether it is bad, to
//! [`crate::findings`].
//!
//! - Calls take effect in the order of [`crate::memory::memory_events`].
//! - Times are those that threads ran, where that is known ([`crate::time::off_cpu_times`]).
//! - Only pages whose touch was seen count as taken: a fault, or a call that brings pages. The first touch of a page is no
//!   consequence of any release, however often its range was given back before; nor is what was touched before the recording.
//! - Advice of `MADV_FREE` leaves pages until the kernel needs them. Where they are touched before, there is no fault, and where
//!   they are given back once more, the later release counts.
//! - A fault that a fork caused ([`crate::memory::fork_faults`]) is nobody's, also where advice of `MADV_FREE` had taken its page.
//! - munmap, mmap and mremap end it: what lies there afterwards is another block ([`crate::memory::memory_blocks`]).
//! - A page is one of 4 KiB. Where a fault brings more at once (huge pages), only the one with its address is known.

use crate::integer_hash::{IntegerMap, IntegerSet};
use crate::memory::address_ranges::OwnedRange;
use crate::memory::fork_faults::ForkFaults;
use crate::memory::memory_calls::{
    DISCARDS, MADV_FREE, MAP_ANONYMOUS, MAP_POPULATE, POPULATES, heap_pages, old_pages, pages, share,
};
use crate::memory::memory_events::{Event, MemoryEvents, Step};
use crate::memory::page_owners::PageOwners;
use crate::time::off_cpu_times::OffCpuTimes;
use slowpath_recording::Host;
use slowpath_tables::{Fault, FaultKind, MemoryCall, MemoryCallKind, Nanos, PAGE_SIZE, Pages, ProcessKey};

/// How pages were given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReleaseKind {
    /// The heap of brk shrank.
    BrkTrim,
    /// madvise with `MADV_DONTNEED`: the pages are gone at once.
    DontNeed,
    /// madvise with `MADV_FREE`: the kernel may take them.
    Free,
}

impl ReleaseKind {
    /// The word in evidence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BrkTrim => "brk_trim",
            Self::DontNeed => "madvise_dontneed",
            Self::Free => "madvise_free",
        }
    }
}

/// A call that took pages which had been touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Its process.
    pub process: ProcessKey,
    /// The thread that called.
    pub tid: u32,
    /// Call stack: `stacks.id`.
    pub stack: Option<u32>,
    /// How.
    pub kind: ReleaseKind,
    /// When the call returned.
    pub returned: Nanos,
    /// Size of its range.
    pub length: Pages,
    /// Pages that it took.
    pub taken: Pages,
    /// Time in the call.
    pub call_time: Nanos,
    /// What its thread did not run in it, and is not in that time.
    pub call_off_cpu: Nanos,
    /// Calls of brk that made pages usable again, each counted for one release.
    pub grows: u64,
    /// Time in such calls, by the bytes that this release had taken.
    pub grow_time: Nanos,
    /// What threads did not run in them, in the same way.
    pub grow_off_cpu: Nanos,
    /// First and last fault in what it took.
    pub touched: Option<(Nanos, Nanos)>,
    /// Faults in what it took: pages that came back.
    pub faults: u64,
    /// Those of unknown duration.
    pub untimed: u64,
    /// Major faults: from swap, say.
    pub major: u64,
    /// Time in faults of known duration.
    pub fault_time: Nanos,
}

impl Release {
    /// The part of the call's time that pages have which came back; the others were given back for good.
    pub fn release_time(&self) -> Nanos {
        share(self.call_time, self.faults, self.taken.0)
    }

    /// What threads did not run in calls and is no part of [`Release::time`], by the same parts.
    pub fn calls_off_cpu(&self) -> Nanos {
        share(self.call_off_cpu, self.faults, self.taken.0) + self.grow_off_cpu
    }

    /// Time in all that it caused: faults of known duration and calls.
    pub fn time(&self) -> Nanos {
        self.release_time() + self.grow_time + self.fault_time
    }

    /// From its return to the first touch of what it took; `None` where nothing came back.
    pub fn away(&self) -> Option<Nanos> {
        Some(self.touched?.0 - self.returned)
    }
}

/// All releases of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleasedPages {
    /// In the order of the calls.
    pub releases: Vec<Release>,
    /// For each row of `faults` the release that had taken its page; empty where there is no release.
    pub of_fault: Vec<Option<u32>>,
    /// The machine's pages.
    pub host: Host,
}

/// Owner of pages that are there.
const PRESENT: u32 = u32::MAX;

/// Follows the pages of all processes. Advice in the rows `others` of `memory_calls` is left out: it belongs to something else. `forks`
/// says which faults are not of releases, `off_cpu` what of durations is no cost.
pub fn follow(events: &MemoryEvents<'_>, others: &[usize], forks: &ForkFaults, off_cpu: &OffCpuTimes) -> ReleasedPages {
    let tables = events.tables();
    let others: IntegerSet<usize> = others.iter().copied().collect();
    let page = tables.manifest.host.page();
    let ranges = released_ranges(&tables.memory_calls, &others, page);
    if ranges.is_empty() {
        return ReleasedPages::default();
    }
    let (calls, spaces) = (&tables.memory_calls, IntegerMap::default());
    let mut replay = Replay { calls, off_cpu, others, ranges, page, spaces, releases: Vec::new() };
    let mut of_fault = vec![None; tables.faults.len()];
    events.for_each(|event| match event {
        Event::Step(ts, step) => replay.step(ts, step),
        Event::Fault(number) => {
            let fault = &tables.faults[number];
            of_fault[number] = replay.fault(fault, off_cpu.fault_time(number, fault), forks.holds(number));
        }
        Event::Sample(_) => {}
    });
    ReleasedPages { releases: replay.releases, of_fault, host: tables.manifest.host.clone() }
}

/// What a call gives back, in whole pages of so many bytes: how, from, to.
fn released(call: &MemoryCall, page: u64) -> Option<(ReleaseKind, u64, u64)> {
    let (kind, (from, to)) = match call.call {
        _ if call.result != 0 => return None,
        MemoryCallKind::Brk if call.shrinks => (ReleaseKind::BrkTrim, heap_pages(call, page)),
        MemoryCallKind::Madvise if call.argument == MADV_FREE => (ReleaseKind::Free, pages(call, page)),
        MemoryCallKind::Madvise if DISCARDS.contains(&call.argument) => (ReleaseKind::DontNeed, pages(call, page)),
        _ => return None,
    };
    (from < to).then_some((kind, from, to))
}

/// Ranges by process that do not overlap, in order.
type Ranges = IntegerMap<ProcessKey, Vec<(u64, u64)>>;

/// All that is ever given back: pages beyond need not be followed, and most programs give back nothing.
fn released_ranges(calls: &[MemoryCall], others: &IntegerSet<usize>, page: u64) -> Ranges {
    let mut ranges = Ranges::default();
    for (_, call) in calls.iter().enumerate().filter(|(number, _)| !others.contains(number)) {
        if let Some((_, from, to)) = released(call, page) {
            ranges.entry(call.process()).or_default().push((from, to));
        }
    }
    for ranges in ranges.values_mut() {
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let is_one = next.0 <= last.1;
            if is_one {
                last.1 = last.1.max(next.1);
            }
            is_one
        });
    }
    ranges
}

struct Replay<'a> {
    calls: &'a [MemoryCall],
    off_cpu: &'a OffCpuTimes,
    others: IntegerSet<usize>,
    ranges: Ranges,
    /// Bytes of one of the kernel's pages.
    page: u64,
    /// Pages of each process that were touched.
    spaces: IntegerMap<ProcessKey, Space>,
    releases: Vec<Release>,
}

/// Pages of a process that were touched; none is in both. A release looks only for those that it can take, however many earlier ones
/// have taken from its range.
#[derive(Debug, Default)]
struct Space {
    /// Owned by [`PRESENT`], or by the last release after which the kernel may take them.
    there: PageOwners,
    /// Owned by the release that took them.
    gone: PageOwners,
}

impl Space {
    /// What releases have to do with, between two addresses, in their order.
    fn between(&self, from: u64, to: u64) -> Vec<OwnedRange> {
        let mut parts = self.there.between(from, to);
        parts.append(&mut self.gone.between(from, to));
        parts.sort_unstable_by_key(|part| part.from);
        parts
    }

    fn clear(&mut self, from: u64, to: u64) {
        self.there.clear(from, to);
        self.gone.clear(from, to);
    }

    /// All pages of a range are there.
    fn bring(&mut self, from: u64, to: u64) {
        self.there.fill(from, to, PRESENT);
        self.gone.clear(from, to);
    }

    /// A page of the kernel's is there, so many bytes with this address among them; whose the first of it was that anybody had.
    fn touch(&mut self, address: u64, bytes: u64) -> Option<u32> {
        let from = address - address % bytes;
        let parts = (from..from.saturating_add(bytes)).step_by(PAGE_SIZE as usize);
        let owner = |part: u64| self.there.set(part, PRESENT).or_else(|| self.gone.take(part));
        parts.map(owner).fold(None, Option::or)
    }

    /// A release takes these parts, all that are there of its range; of what it only may take, the kernel decides.
    fn release(&mut self, parts: &[OwnedRange], (from, to): (u64, u64), kind: ReleaseKind, number: u32) {
        let pages = if kind == ReleaseKind::Free {
            &mut self.there
        } else {
            self.there.clear(from, to);
            &mut self.gone
        };
        parts.iter().for_each(|part| pages.fill(part.from, part.to, number));
    }
}

impl Replay<'_> {
    fn step(&mut self, ts: Nanos, step: Step) {
        let (calls, page) = (self.calls, self.page);
        match step {
            // What a child gives back of its parent's memory counts only where it touched it itself.
            Step::Forks { .. } | Step::Looks(_) => {}
            Step::Ends(process) => _ = self.spaces.remove(&process),
            Step::Begins(number) => {
                let call = &calls[number];
                match call.call {
                    MemoryCallKind::Munmap => self.forget(call, pages(call, page)),
                    MemoryCallKind::Mremap => self.forget(call, old_pages(call, page)),
                    MemoryCallKind::Madvise if POPULATES.contains(&call.argument) => {
                        self.bring(call, pages(call, page));
                    }
                    _ if self.others.contains(&number) => {}
                    _ => self.release(ts, number, call),
                }
            }
            Step::Returns(number) => {
                let call = &calls[number];
                match call.call {
                    MemoryCallKind::Mmap => {
                        let range = pages(call, page);
                        self.forget(call, range);
                        if call.argument & MAP_POPULATE != 0 && call.argument & MAP_ANONYMOUS != 0 {
                            self.bring(call, range);
                        }
                    }
                    MemoryCallKind::Mremap => self.forget(call, pages(call, page)),
                    MemoryCallKind::Brk => self.grow(number, call),
                    MemoryCallKind::Munmap | MemoryCallKind::Madvise | MemoryCallKind::Prctl => {}
                }
            }
        }
    }

    /// Something else lies there now, or nothing.
    fn forget(&mut self, call: &MemoryCall, (from, to): (u64, u64)) {
        if let Some(space) = self.spaces.get_mut(&call.process()) {
            space.clear(from, to);
        }
    }

    /// A call brought pages, without recorded faults.
    fn bring(&mut self, call: &MemoryCall, (from, to): (u64, u64)) {
        let Some(ranges) = self.ranges.get(&call.process()) else { return };
        let space = self.spaces.entry(call.process()).or_default();
        let first = ranges.partition_point(|range| range.1 <= from);
        for range in ranges[first..].iter().take_while(|range| range.0 < to) {
            space.bring(from.max(range.0), to.min(range.1));
        }
    }

    fn release(&mut self, ts: Nanos, row: usize, call: &MemoryCall) {
        let Some((kind, from, to)) = released(call, self.page) else { return };
        let Some(space) = self.spaces.get_mut(&call.process()) else { return };
        let Ok(number) = u32::try_from(self.releases.len()) else { return };
        // What is gone cannot be taken once more; what the kernel may take can.
        let parts = space.there.between(from, to);
        let taken: u64 = parts.iter().map(|part| part.bytes() / PAGE_SIZE).sum();
        if taken == 0 || number == PRESENT {
            return;
        }
        space.release(&parts, (from, to), kind, number);
        self.releases.push(Release {
            process: call.process(),
            tid: call.tid,
            stack: call.stack,
            kind,
            returned: ts + call.duration,
            length: Pages((to - from) / PAGE_SIZE),
            taken: Pages(taken),
            call_time: self.off_cpu.call_time(row, call),
            call_off_cpu: self.off_cpu.in_call(row, call),
            grows: 0,
            grow_time: Nanos(0),
            grow_off_cpu: Nanos(0),
            touched: None,
            faults: 0,
            untimed: 0,
            major: 0,
            fault_time: Nanos(0),
        });
    }

    fn grow(&mut self, row: usize, call: &MemoryCall) {
        let (from, to) = heap_pages(call, self.page);
        let (time, off_cpu) = (self.off_cpu.call_time(row, call), self.off_cpu.in_call(row, call));
        let parts = self.spaces.get(&call.process()).map(|space| space.between(from, to)).unwrap_or_default();
        let mut is_counted = false;
        for part in parts {
            let Some(release) = self.releases.get_mut(part.owner as usize) else { continue };
            release.grow_time += share(time, part.bytes(), to - from);
            release.grow_off_cpu += share(off_cpu, part.bytes(), to - from);
            release.grows += u64::from(!is_counted);
            is_counted = true;
        }
    }

    /// `time` is what it cost, where that is known.
    fn fault(&mut self, fault: &Fault, time: Option<Nanos>, by_fork: bool) -> Option<u32> {
        let process = fault.process();
        let ranges = self.ranges.get(&process)?;
        let next = ranges.partition_point(|range| range.0 <= fault.address);
        let range = ranges.get(next.checked_sub(1)?)?;
        if fault.address >= range.1 {
            return None;
        }
        let owner = self.spaces.entry(process).or_default().touch(fault.address, self.page);
        let number = owner.filter(|owner| *owner != PRESENT && !by_fork)?;
        let release = self.releases.get_mut(number as usize)?;
        release.touched = Some((release.touched.map_or(fault.ts, |(first, _)| first), fault.ts));
        release.faults += 1;
        release.untimed += u64::from(time.is_none());
        release.major += u64::from(fault.kind == FaultKind::Major);
        release.fault_time += time.unwrap_or_default();
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_walks_over_what_is_there_and_not_over_all_that_is_gone() {
        const APART: u64 = 1 << 20;
        let (pages, mut space) = (20_000u64, Space::default());
        (0..pages).for_each(|page| assert_eq!(space.touch(page * APART, PAGE_SIZE), None));
        let range = (0, pages * APART);
        // Each takes what is there: all first, then the one that was touched since. Two thousand million steps, were each of them to walk
        // over all.
        for number in 0..100_000u32 {
            let parts = space.there.between(range.0, range.1);
            assert_eq!(parts.len() as u64, if number == 0 { pages } else { 1 });
            space.release(&parts, range, ReleaseKind::DontNeed, number);
            assert_eq!(space.there.pieces(), 0);
            let page = u64::from(number) * 7919 % pages;
            let last = u64::from(number).checked_sub(pages).map_or(0, |last| last as u32 + 1);
            assert_eq!(space.touch(page * APART, PAGE_SIZE), Some(last));
        }
    }
}
