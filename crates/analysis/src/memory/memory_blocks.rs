//! Blocks of anonymous memory: who mapped them, until when they lasted, which faults were taken in them, and which of them the
//! arguments of code point into that CPU samples saw.
//!
//! Owns the replay of `memory_calls` by process, with what `page_contents` says of the pages in blocks. A block is what one mmap
//! without a file made. It lasts until its last byte is unmapped or mapped over, or its process ends or executes a program; mremap
//! moves, grows and shrinks it; a fault belongs to the block that its address is in. Leaves what that costs, and whether it is bad, to [`crate::findings`].
//!
//! - Times are those that threads ran, where that is known ([`crate::time::off_cpu_times`]).
//! - Calls take effect in the order of [`crate::memory::memory_events`]. An address that one thread frees and another is given at once
//!   belongs to the right block then, though both calls last.
//! - What is unmapped before anything was touched was only there to find a place: it is no part of the block's size.
//! - A call that takes away parts of several blocks counts for each in proportion to its bytes.
//! - A fault that a fork caused ([`crate::memory::fork_faults`]) is not the block's: it is counted apart, and belongs to no block.
//! - Not blocks: memory that was mapped before the recording, and what mremap adds to it; the heap of brk; mapped files; what a
//!   child has from its parent. A child of vfork shares its parent's address space until it executes: what it unmaps there is
//!   not seen in the parent.

use crate::integer_hash::{IntegerMap, IntegerSet};
use crate::memory::address_ranges::{AddressRanges, OwnedRange};
use crate::memory::block::Brought;
use crate::memory::fork_faults::ForkFaults;
use crate::memory::huge_faults;
use crate::memory::huge_page_advice::{AdviceReplay, HugePageAdvice};
use crate::memory::memory_calls::{DISCARDS, MAP_ANONYMOUS, MAP_POPULATE, POPULATES, old_pages, pages, share};
use crate::memory::memory_events::{Event, MemoryEvents, Step};
use crate::time::off_cpu_times::OffCpuTimes;
use slowpath_recording::{Host, Tables};
use slowpath_tables::{
    Bytes, CpuSample, Fault, FaultKind, LookMoment, MemoryCall, MemoryCallKind, Nanos, PAGE_SIZE, PageContent, Pages,
    ProcessKey,
};

pub use crate::memory::block::{Block, BlockEnd};

/// Flag of mmap: a thread's stack (`include/uapi/asm-generic/mman-common.h`; the same on x86 and arm64).
const MAP_STACK: u32 = 0x2_0000;
/// Bit of the flags of mmap that `MAP_SHARED` and `MAP_SHARED_VALIDATE` have and `MAP_PRIVATE` has not.
const MAP_SHARED: u32 = 1;
/// Flag of mmap: no swap space is set aside (`include/uapi/asm-generic/mman-common.h`; the same on x86 and arm64).
const MAP_NORESERVE: u32 = 0x4000;
/// Flag of mremap: the old range stays mapped.
const MREMAP_DONTUNMAP: u32 = 4;

/// A page of a block that was looked at and was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenPage {
    /// Number of its block.
    pub block: u32,
    /// Its address.
    pub page: u64,
    /// From the begin of the block, as it was then.
    pub offset: Bytes,
    /// For how many pages it stands: those up to the next that was looked at.
    pub stands_for: Pages,
    /// Whether every byte was zero.
    pub is_zero: bool,
}

/// A place in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockPlace {
    /// Number of the block.
    pub block: u32,
    /// Bytes from the beginning of what is mapped of the block in one piece.
    pub offset: u64,
}

/// Where the two arguments of a CPU sample point to; at least one of them into a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentPlaces {
    /// Row of `cpu_samples`.
    pub sample: usize,
    /// The place of the first argument.
    pub first: Option<BlockPlace>,
    /// The place of the second argument.
    pub second: Option<BlockPlace>,
}

/// All blocks of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryBlocks {
    /// The blocks, in the order in which they came to be.
    pub blocks: Vec<Block>,
    /// For each row of `faults` the block that it was taken in; none for those that forks caused.
    pub of_fault: Vec<Option<u32>>,
    /// Advice that gave pages of blocks back: row of `memory_calls` and block.
    pub discarded: Vec<(usize, u32)>,
    /// Pages of blocks that were looked at.
    pub seen: Vec<SeenPage>,
    /// Rows of `faults` that may have brought a huge page, sorted.
    huge: Vec<usize>,
    /// The machine's pages.
    host: Host,
    /// CPU samples of which an argument points into a block, in the order of time.
    pub arguments: Vec<ArgumentPlaces>,
}

impl MemoryBlocks {
    /// Pages, as tables count them, that so many faults brought which bring no huge one.
    pub fn brought_by(&self, faults: u64) -> u64 {
        faults.saturating_mul(self.host.page() / PAGE_SIZE)
    }

    /// Whether a row of `faults` may have brought a huge page ([`crate::memory::huge_faults`]).
    pub fn is_huge(&self, row: usize) -> bool {
        self.huge.binary_search(&row).is_ok()
    }
}

/// Follows the blocks of all processes. `forks` says which faults are not theirs, `off_cpu` what of their durations is no cost.
pub fn follow(events: &MemoryEvents<'_>, forks: &ForkFaults, off_cpu: &OffCpuTimes) -> MemoryBlocks {
    let tables = events.tables();
    let mut of_fault = vec![None; tables.faults.len()];
    if tables.memory_calls.is_empty() {
        return MemoryBlocks { of_fault, ..MemoryBlocks::default() };
    }
    let mut arguments = Vec::new();
    let looks = &tables.page_contents;
    let mut replay = Replay { looks, off_cpu: Some(off_cpu), ..Replay::new(tables) };
    let mut requests = AdviceReplay::new(tables);
    let mut refused = IntegerSet::default();
    events.for_each(|event| match event {
        Event::Step(ts, step) => {
            replay.step(ts, step);
            requests.step(step);
        }
        Event::Fault(number) => {
            let fault = &tables.faults[number];
            of_fault[number] = replay.fault(fault, off_cpu.fault_time(number, fault), forks.holds(number));
            if of_fault[number].is_some()
                && requests.at(fault.process(), fault.ts, fault.address) == HugePageAdvice::Refused
            {
                refused.insert(number);
            }
        }
        Event::Sample(number) => arguments.extend(replay.arguments(number, &tables.cpu_samples[number])),
    });
    let mut blocks = replay.blocks;
    let huge = huge_faults::add(&mut blocks, &of_fault, &refused, tables, off_cpu);
    let host = tables.manifest.host.clone();
    MemoryBlocks { blocks, of_fault, discarded: replay.discarded, seen: replay.seen, huge, host, arguments }
}

/// The blocks at a moment; for those who follow something else beside them.
#[derive(Default)]
pub(crate) struct Replay<'a> {
    calls: &'a [MemoryCall],
    /// Bytes of one of the kernel's pages.
    page: u64,
    looks: &'a [PageContent],
    /// What of the durations of calls is no cost of theirs; `None` where nobody asks for times.
    off_cpu: Option<&'a OffCpuTimes>,
    spaces: IntegerMap<ProcessKey, AddressRanges>,
    blocks: Vec<Block>,
    /// Bytes of each block that are mapped.
    mapped: Vec<u64>,
    /// What calls of mremap took away and have not put to its new place, by number of the call.
    moving: IntegerMap<usize, Vec<OwnedRange>>,
    discarded: Vec<(usize, u32)>,
    seen: Vec<SeenPage>,
    /// Processes whose pages were looked at when they, or the recording, ended.
    at_end: IntegerSet<ProcessKey>,
    /// The part that the last fault was in, while nothing has changed: faults come in rows of neighbours.
    last: Option<(ProcessKey, OwnedRange)>,
}

impl<'a> Replay<'a> {
    /// Before the first call of a recording; what pages held is not followed, and calls cost their durations.
    pub fn new(tables: &'a Tables) -> Self {
        Self { calls: &tables.memory_calls, page: tables.manifest.host.page(), ..Self::default() }
    }

    /// The part of a block that an address is in now.
    pub fn at(&self, process: ProcessKey, address: u64) -> Option<(OwnedRange, &Block)> {
        let part = self.spaces.get(&process)?.part_at(address)?;
        Some((part, self.blocks.get(part.owner as usize)?))
    }

    /// A call takes effect.
    pub fn step(&mut self, ts: Nanos, step: Step) {
        let calls = self.calls;
        self.last = None;
        match step {
            Step::Looks(number) => self.looks.get(number).into_iter().for_each(|look| self.look(look)),
            Step::Ends(process) => {
                let parts = self.spaces.remove(&process).map(|mut space| space.take_all()).unwrap_or_default();
                parts.into_iter().for_each(|part| self.lose(part, ts, BlockEnd::WithProcess, None));
            }
            // A child's blocks are those that it maps itself.
            Step::Forks { .. } => {}
            Step::Begins(number) => match calls[number].call {
                MemoryCallKind::Munmap => self.unmap(number, &calls[number]),
                MemoryCallKind::Madvise => self.advise(number, &calls[number]),
                MemoryCallKind::Mremap => self.leave(number, &calls[number]),
                MemoryCallKind::Mmap | MemoryCallKind::Brk | MemoryCallKind::Prctl => {}
            },
            Step::Returns(number) => match calls[number].call {
                MemoryCallKind::Mmap => self.map(ts, number, &calls[number]),
                MemoryCallKind::Mremap => self.arrive(ts, number, &calls[number]),
                _ => {}
            },
        }
    }

    /// What a call cost, and what its thread did not run in it.
    fn times(&self, number: usize, call: &MemoryCall) -> (Nanos, Nanos) {
        let off_cpu = self.off_cpu.map_or(Nanos(0), |off_cpu| off_cpu.in_call(number, call));
        (call.duration - off_cpu, off_cpu)
    }

    fn block(&mut self, part: OwnedRange) -> &mut Block {
        &mut self.blocks[part.owner as usize]
    }

    /// A part is gone, and with the last one its block.
    fn lose(&mut self, part: OwnedRange, ts: Nanos, end: BlockEnd, by: Option<u32>) {
        let mapped = &mut self.mapped[part.owner as usize];
        *mapped = mapped.saturating_sub(part.bytes());
        if *mapped == 0 {
            let block = self.block(part);
            (block.closed, block.end, block.released_by) = (Some(ts), end, by);
        } else {
            let left = Bytes(*mapped);
            let block = self.block(part);
            if block.faults == 0 && block.fork_faults == 0 && !block.populated {
                block.length = left;
            }
        }
    }

    /// What lay where something new is mapped now.
    fn replace(&mut self, ts: Nanos, call: &MemoryCall, from: u64, to: u64) {
        let parts = self.spaces.get_mut(&call.process()).map(|space| space.take(from, to)).unwrap_or_default();
        parts.into_iter().for_each(|part| self.lose(part, ts, BlockEnd::Replaced, Some(call.tid)));
    }

    fn map(&mut self, ts: Nanos, number: usize, call: &MemoryCall) {
        let (from, to) = pages(call, self.page);
        self.replace(ts, call, from, to);
        let Ok(block) = u32::try_from(self.blocks.len()) else { return };
        let (map_time, calls_off_cpu) = self.times(number, call);
        if call.argument & MAP_ANONYMOUS == 0 || from >= to {
            return;
        }
        self.blocks.push(Block {
            process: call.process(),
            mapped_by: call.tid,
            released_by: None,
            stack: call.stack,
            opened: ts,
            closed: None,
            end: BlockEnd::Never,
            length: Bytes(to - from),
            is_stack: call.argument & MAP_STACK != 0,
            is_shared: call.argument & MAP_SHARED != 0,
            is_room: call.argument & MAP_NORESERVE != 0,
            populated: call.argument & MAP_POPULATE != 0,
            map_time,
            release_time: Nanos(0),
            calls_off_cpu,
            discards: 0,
            discarded_at: None,
            looked_at: Bytes(0),
            looked_at_end: false,
            faults: 0,
            untimed: 0,
            major: 0,
            by_kernel: 0,
            fault_time: Nanos(0),
            fork_faults: 0,
            brought: Brought::default(),
        });
        self.mapped.push(to - from);
        self.spaces.entry(call.process()).or_default().put(OwnedRange { from, to, owner: block });
    }

    fn unmap(&mut self, number: usize, call: &MemoryCall) {
        let (from, to) = pages(call, self.page);
        let (time, off_cpu) = self.times(number, call);
        let parts = self.spaces.get_mut(&call.process()).map(|space| space.take(from, to)).unwrap_or_default();
        for part in parts {
            let block = self.block(part);
            block.release_time += share(time, part.bytes(), to - from);
            block.calls_off_cpu += share(off_cpu, part.bytes(), to - from);
            self.lose(part, call.ts, BlockEnd::Unmapped, Some(call.tid));
        }
    }

    fn advise(&mut self, number: usize, call: &MemoryCall) {
        let (discards, populates) = (DISCARDS.contains(&call.argument), POPULATES.contains(&call.argument));
        if !discards && !populates {
            return;
        }
        let (from, to) = pages(call, self.page);
        let (whole, off_cpu) = self.times(number, call);
        let parts = self.spaces.get(&call.process()).map(|space| space.between(from, to)).unwrap_or_default();
        for part in parts {
            let time = share(whole, part.bytes(), to - from);
            let block = self.block(part);
            block.calls_off_cpu += share(off_cpu, part.bytes(), to - from);
            if discards {
                block.release_time += time;
                block.discards += 1;
                block.discarded_at = Some(call.ts);
                self.discarded.push((number, part.owner));
            } else {
                block.map_time += time;
                block.populated = true;
            }
        }
    }

    fn look(&mut self, look: &PageContent) {
        let Some(space) = self.spaces.get(&look.process()) else { return };
        let (from, to) = look.range();
        for (page, is_zero) in look.present_pages() {
            let Some(part) = space.part_at(page) else { continue };
            let (offset, stands_for) = (Bytes(page - part.from), Pages(look.stride.0 / PAGE_SIZE));
            self.seen.push(SeenPage { block: part.owner, page, offset, stands_for, is_zero });
        }
        if look.moment == LookMoment::Munmap {
            for part in space.between(from, to) {
                self.blocks[part.owner as usize].looked_at += Bytes(part.bytes());
            }
        } else if self.at_end.insert(look.process()) {
            for part in space.between(0, u64::MAX) {
                self.blocks[part.owner as usize].looked_at_end = true;
            }
        }
    }

    fn leave(&mut self, number: usize, call: &MemoryCall) {
        let (from, to) = old_pages(call, self.page);
        let Some(space) = self.spaces.get_mut(&call.process()) else { return };
        let stays = call.argument & MREMAP_DONTUNMAP != 0;
        let parts = if stays { space.between(from, to) } else { space.take(from, to) };
        self.moving.insert(number, parts);
    }

    fn arrive(&mut self, ts: Nanos, number: usize, call: &MemoryCall) {
        let (old_from, old_to) = old_pages(call, self.page);
        let (from, to) = pages(call, self.page);
        self.replace(ts, call, from, to);
        let (time, off_cpu) = self.times(number, call);
        let parts = self.moving.remove(&number).unwrap_or_default();
        let stays = call.argument & MREMAP_DONTUNMAP != 0;
        let moved = |address: u64| from.saturating_add(address.saturating_sub(old_from));
        let mut lost = Vec::new();
        for part in parts {
            // What lay last grows with the range.
            let end = if part.to == old_to { to } else { moved(part.to).min(to) };
            let new = OwnedRange { from: moved(part.from).min(end), to: end, ..part };
            let mapped = &mut self.mapped[part.owner as usize];
            let before = if stays { 0 } else { part.bytes() };
            *mapped = mapped.saturating_add(new.bytes().saturating_sub(before));
            let length = *mapped;
            let block = &mut self.blocks[part.owner as usize];
            block.length = block.length.max(Bytes(length));
            block.map_time += share(time, part.bytes(), old_to - old_from);
            block.calls_off_cpu += share(off_cpu, part.bytes(), old_to - old_from);
            if !stays && new.bytes() < part.bytes() {
                lost.push(OwnedRange { to: part.from + (part.bytes() - new.bytes()), ..part });
            }
            self.spaces.entry(call.process()).or_default().put(new);
        }
        lost.into_iter().for_each(|part| self.lose(part, ts, BlockEnd::Unmapped, Some(call.tid)));
    }

    fn arguments(&self, sample: usize, row: &CpuSample) -> Option<ArgumentPlaces> {
        let space = self.spaces.get(&row.process())?;
        let place = |address: Option<u64>| {
            let part = space.part_at(address?)?;
            Some(BlockPlace { block: part.owner, offset: address? - part.from })
        };
        let (first, second) = (place(row.first_argument), place(row.second_argument));
        (first.is_some() || second.is_some()).then_some(ArgumentPlaces { sample, first, second })
    }

    /// `time` is what it cost, where that is known.
    fn fault(&mut self, fault: &Fault, time: Option<Nanos>, by_fork: bool) -> Option<u32> {
        let is_last =
            |(process, part): &(ProcessKey, OwnedRange)| *process == fault.process() && part.holds(fault.address);
        let part = match self.last.filter(is_last) {
            Some((_, part)) => part,
            None => self.spaces.get(&fault.process())?.part_at(fault.address)?,
        };
        self.last = Some((fault.process(), part));
        let number = part.owner;
        let block = &mut self.blocks[number as usize];
        if by_fork {
            block.fork_faults += 1;
            return None;
        }
        block.faults += 1;
        block.untimed += u64::from(time.is_none());
        block.major += u64::from(fault.kind == FaultKind::Major);
        block.by_kernel += u64::from(fault.kernel);
        block.fault_time += time.unwrap_or_default();
        Some(number)
    }
}
