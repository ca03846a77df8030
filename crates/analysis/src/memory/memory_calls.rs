//! When calls that change an address space take effect, beside the faults that are taken in it.
//!
//! Owns that order. Threads share an address space, so calls overlap. What a call makes counts from its return on, when somebody
//! can know its address; what it takes away, from its begin on, when nobody may use it. Leaves what a call means to those that
//! follow it: [`crate::memory::memory_blocks`], [`crate::memory::released_pages`].

use crate::integer_hash::IntegerMap;
use slowpath_recording::Tables;
use slowpath_tables::{Bytes, MemoryCall, MemoryCallKind, Nanos, ProcessKey};

/// Flag of mmap: no file (`include/uapi/asm-generic/mman-common.h`; the same on x86 and arm64).
pub(crate) const MAP_ANONYMOUS: u32 = 0x20;
/// Flag of mmap: fill the page tables at once.
pub(crate) const MAP_POPULATE: u32 = 0x8000;
/// Advice that gives pages back at once.
pub(crate) const MADV_DONTNEED: u32 = 4;
/// Advice that lets the kernel take pages when it needs some.
pub(crate) const MADV_FREE: u32 = 8;
/// Advice that gives pages back.
pub(crate) const DISCARDS: [u32; 2] = [MADV_DONTNEED, MADV_FREE];
/// Advice that brings them: `MADV_POPULATE_READ`, `MADV_POPULATE_WRITE`.
pub(crate) const POPULATES: [u32; 2] = [22, 23];

/// Advice to give huge pages.
pub(crate) const MADV_HUGEPAGE: u32 = 14;
/// Advice to give none.
pub(crate) const MADV_NOHUGEPAGE: u32 = 15;

/// What happens at a moment. Of the same moment, what is made comes first: it is there before it can be taken away. A call that moves and
/// took no time does both at its place among these, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A call made something: number of its row.
    Returns(usize),
    /// Pages were looked at: number of the row of `page_contents`.
    Looks(usize),
    /// A process made another one, which has its memory.
    Forks {
        /// Who.
        parent: ProcessKey,
        /// Whom.
        child: ProcessKey,
    },
    /// A process ended, or executes another program.
    Ends(ProcessKey),
    /// A call takes something away, or advises: number of its row.
    Begins(usize),
}

impl Step {
    fn order(&self, calls: &[MemoryCall]) -> u8 {
        match self {
            Self::Returns(_) => 0,
            Self::Looks(_) | Self::Forks { .. } => 1,
            Self::Ends(_) => 2,
            Self::Begins(number) if calls[*number].call == MemoryCallKind::Mremap && calls[*number].duration.0 == 0 => {
                0
            }
            Self::Begins(_) => 3,
        }
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A change of an address space.
    Step(Nanos, Step),
    /// A fault: number of its row.
    Fault(usize),
    /// A CPU sample with arguments: number of its row.
    Sample(usize),
}

/// Hands out all steps, faults and samples in the order in which they count. Rows may be in any order; calls of the same moment keep
/// theirs, and come before faults, and these before samples.
pub(crate) fn in_order(tables: &Tables, mut take: impl FnMut(Event)) {
    let steps = steps(tables);
    let mut steps = steps.into_iter().peekable();
    // One by one: mostly there is none, and each is passed once.
    let mut up_to = |until: Nanos, take: &mut dyn FnMut(Event)| {
        while let Some((ts, step)) = steps.next_if(|(ts, _)| *ts <= until) {
            take(Event::Step(ts, step));
        }
    };
    let tells = |sample: &usize| tables.cpu_samples[*sample].first_argument.is_some();
    let samples = by_time(&tables.cpu_samples, |sample| sample.ts).filter(tells);
    let mut samples = samples.collect::<Vec<_>>().into_iter().peekable();
    for number in by_time(&tables.faults, |fault| fault.ts) {
        let ts = tables.faults[number].ts;
        while let Some(sample) = samples.next_if(|sample| tables.cpu_samples[*sample].ts < ts) {
            up_to(tables.cpu_samples[sample].ts, &mut take);
            take(Event::Sample(sample));
        }
        up_to(ts, &mut take);
        take(Event::Fault(number));
    }
    for sample in samples {
        up_to(tables.cpu_samples[sample].ts, &mut take);
        take(Event::Sample(sample));
    }
    up_to(Nanos(u64::MAX), &mut take);
}

/// Numbers of rows in the order of their times; those of the same time keep theirs. Recordings are sorted, and of sorted rows no list is
/// made: there are millions, and several that follow them.
fn by_time<T>(rows: &[T], ts: impl Fn(&T) -> Nanos) -> impl Iterator<Item = usize> {
    let is_sorted = rows.is_sorted_by_key(&ts);
    let mut sorted: Vec<usize> = if is_sorted { Vec::new() } else { (0..rows.len()).collect() };
    sorted.sort_by_key(|row| ts(&rows[*row]));
    (0..if is_sorted { rows.len() } else { 0 }).chain(sorted)
}

fn steps(tables: &Tables) -> Vec<(Nanos, Step)> {
    let mut steps = Vec::with_capacity(tables.memory_calls.len() * 2);
    for (number, call) in tables.memory_calls.iter().enumerate().filter(|(_, call)| call.result == 0) {
        let (begin, end) = ((call.ts, Step::Begins(number)), (call.ts + call.duration, Step::Returns(number)));
        match call.call {
            MemoryCallKind::Mmap => steps.push(end),
            MemoryCallKind::Munmap | MemoryCallKind::Madvise => steps.push(begin),
            MemoryCallKind::Prctl => steps.push(end),
            MemoryCallKind::Mremap => steps.extend([begin, end]),
            MemoryCallKind::Brk if call.shrinks => steps.push(begin),
            MemoryCallKind::Brk => steps.push(end),
        }
    }
    let forked = tables.forks.iter().filter(|fork| !fork.thread).map(|fork| {
        let parent = ProcessKey { pid: fork.parent_pid, start: fork.parent_start };
        (fork.ts, Step::Forks { parent, child: fork.process() })
    });
    steps.extend(forked);
    let ended = || tables.exits.iter().filter(|exit| exit.last && !exit.running);
    steps.extend(ended().map(|exit| (exit.ts, Step::Ends(exit.process()))));
    if !tables.page_contents.is_empty() {
        // At the end of a process its pages are looked at after the end is reported.
        let ends: IntegerMap<ProcessKey, Nanos> = ended().map(|exit| (exit.process(), exit.ts)).collect();
        steps.extend(tables.page_contents.iter().enumerate().map(|(number, look)| {
            let end = ends.get(&look.process()).copied().unwrap_or(look.ts);
            (look.ts.min(end), Step::Looks(number))
        }));
    }
    let executed = tables.execs.iter().filter(|exec| !exec.present);
    steps.extend(executed.map(|exec| (exec.ts, Step::Ends(exec.process()))));
    steps.sort_by_key(|(ts, step)| (*ts, step.order(&tables.memory_calls)));
    steps
}

/// Whole pages of a call's range, as the kernel takes them: from, to. `page` is bytes of one of its pages
/// ([`slowpath_recording::Host::page`]).
pub(crate) fn pages(call: &MemoryCall, page: u64) -> (u64, u64) {
    whole_pages(call.address, call.length, page)
}

fn whole_pages(address: u64, length: Bytes, page: u64) -> (u64, u64) {
    let from = address - address % page;
    (from, from.saturating_add(up(length.0, page)))
}

/// The end of the page that so many bytes end in.
fn up(bytes: u64, page: u64) -> u64 {
    bytes.div_ceil(page).saturating_mul(page)
}

/// Whole pages by which a brk moved the end of the heap: from, to. A page that the heap ends in stays with it.
pub(crate) fn heap_pages(call: &MemoryCall, page: u64) -> (u64, u64) {
    let (below, above) = if call.shrinks {
        (call.address, call.address.saturating_add(call.length.0))
    } else {
        (call.address.saturating_sub(call.length.0), call.address)
    };
    (up(below, page), up(above, page))
}

/// The old place of a mremap. Where a recording does not tell it, that is taken for the new one: most blocks grow where they are.
pub(crate) fn old_pages(call: &MemoryCall, page: u64) -> (u64, u64) {
    whole_pages(call.old_address.unwrap_or(call.address), call.old_length.unwrap_or_default(), page)
}

/// The part of a call's time that so many of its bytes have.
pub(crate) fn share(time: Nanos, bytes: u64, of: u64) -> Nanos {
    let share = u128::from(time.0) * u128::from(bytes.min(of)) / u128::from(of.max(1));
    Nanos(u64::try_from(share).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_a_heap_ends_in_stays_with_it() {
        let text = "== memory_calls\nts duration pid start tid call address length shrinks\n\
                    1 1 7 1 7 brk 0x5800 4096 false\n2 1 7 1 7 brk 0x3001 10239 true\n";
        let calls = Tables::from_text(text).unwrap().memory_calls;
        assert_eq!(heap_pages(&calls[0], 4 << 10), (0x5000, 0x6000));
        assert_eq!(heap_pages(&calls[1], 4 << 10), (0x4000, 0x6000));
        // The first moves the end within a page of 16 KiB.
        assert_eq!(heap_pages(&calls[0], 16 << 10), (0x8000, 0x8000));
        assert_eq!(heap_pages(&calls[1], 16 << 10), (0x4000, 0x8000));
    }

    #[test]
    fn a_call_takes_whole_pages_of_its_kernel() {
        let text = "== memory_calls\nts duration pid start tid call address length old_address old_length\n\
                    1 1 7 1 7 munmap 0x10000 20000 - -\n2 1 7 1 7 mremap 0x40000 5 0x20000 0x4001\n";
        let calls = Tables::from_text(text).unwrap().memory_calls;
        let ranges = |page| (pages(&calls[0], page), pages(&calls[1], page), old_pages(&calls[1], page));
        assert_eq!(ranges(4 << 10), ((0x10000, 0x15000), (0x40000, 0x41000), (0x20000, 0x25000)));
        assert_eq!(ranges(16 << 10), ((0x10000, 0x18000), (0x40000, 0x44000), (0x20000, 0x28000)));
        assert_eq!(ranges(64 << 10), ((0x10000, 0x20000), (0x40000, 0x50000), (0x20000, 0x30000)));
    }
}
