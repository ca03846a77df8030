//! Blocks of anonymous memory: who mapped them, until when they lasted, which faults were taken in them.
//!
//! Owns the replay of `memory_calls` by process. A block is what one mmap without a file made. It lasts until its last byte is
//! unmapped or mapped over, or its process ends or executes a program; mremap moves, grows and shrinks it; a fault belongs to
//! the block that its address is in. Leaves what that costs, and whether it is bad, to [`crate::findings`].
//!
//! - Threads share an address space, so calls overlap. What mmap and mremap make counts from their return on, when somebody can
//!   know its address; what munmap and mremap take away, from their begin on, when nobody may use it. An address that one
//!   thread frees and another is given at once belongs to the right block then, though both calls last.
//! - A call that takes away parts of several blocks counts for each in proportion to its bytes.
//! - Not blocks: memory that was mapped before the recording, and what mremap adds to it; the heap of brk; mapped files; what a
//!   child has from its parent. A child of vfork shares its parent's address space until it executes: what it unmaps there is
//!   not seen in the parent.

mod space;

use crate::integer_hash::IntegerMap;
use slowpath_recording::Tables;
use slowpath_tables::{Bytes, Fault, FaultKind, MemoryCall, MemoryCallKind, Nanos, PAGE_SIZE, ProcessKey};
use space::{Part, Space};

/// Flag of mmap: no file (`include/uapi/asm-generic/mman-common.h`; the same on x86 and arm64).
const MAP_ANONYMOUS: u32 = 0x20;
/// Flag of mmap: fill the page tables at once.
const MAP_POPULATE: u32 = 0x8000;
/// Flag of mmap: a thread's stack.
const MAP_STACK: u32 = 0x2_0000;
/// Flag of mremap: the old range stays mapped.
const MREMAP_DONTUNMAP: u32 = 4;
/// Advice that gives pages back: `MADV_DONTNEED`, `MADV_FREE`.
pub(crate) const DISCARDS: [u32; 2] = [4, 8];
/// Advice that brings them: `MADV_POPULATE_READ`, `MADV_POPULATE_WRITE`.
const POPULATES: [u32; 2] = [22, 23];

/// How a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEnd {
    /// The program unmapped it.
    Unmapped,
    /// The program mapped something else over it.
    Replaced,
    /// Its process ended, or executed a program.
    WithProcess,
    /// It was mapped when recording ended.
    Never,
}

/// A block of anonymous memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its process.
    pub process: ProcessKey,
    /// The thread that mapped it.
    pub mapped_by: u32,
    /// The thread that took its last byte away; `None` where no thread did.
    pub released_by: Option<u32>,
    /// Call stack of the mmap: `stacks.id`.
    pub stack: Option<u32>,
    /// When mmap returned.
    pub opened: Nanos,
    /// When the call began that took its last byte away, or its process ended; `None` while it lasts.
    pub closed: Option<Nanos>,
    /// How it ended.
    pub end: BlockEnd,
    /// Size, in whole pages, at its largest.
    pub length: Bytes,
    /// Whether it is a thread's stack (`MAP_STACK`).
    pub is_stack: bool,
    /// Whether a call brought its pages, without faults that are told (`MAP_POPULATE`, `MADV_POPULATE_*`).
    pub populated: bool,
    /// Time in mmap and mremap, and in advice that brings pages.
    pub map_time: Nanos,
    /// Time in munmap, and in advice that gives pages back.
    pub release_time: Nanos,
    /// Calls of such advice.
    pub discards: u64,
    /// Faults in it.
    pub faults: u64,
    /// Those of unknown duration.
    pub untimed: u64,
    /// Major faults: from swap, say.
    pub major: u64,
    /// Faults that the kernel took on behalf of a thread.
    pub by_kernel: u64,
    /// Time in faults of known duration.
    pub fault_time: Nanos,
}

impl Block {
    /// Time in all faults of known duration and all calls.
    pub fn time(&self) -> Nanos {
        self.map_time + self.release_time + self.fault_time
    }

    /// From its mmap to its end; `None` while it lasts.
    pub fn lifetime(&self) -> Option<Nanos> {
        Some(self.closed? - self.opened)
    }

    /// Whether the program took it away itself.
    pub fn is_released(&self) -> bool {
        matches!(self.end, BlockEnd::Unmapped | BlockEnd::Replaced)
    }
}

/// All blocks of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryBlocks {
    /// The blocks, in the order in which they came to be.
    pub blocks: Vec<Block>,
    /// For each row of `faults` the block that it was taken in.
    pub of_fault: Vec<Option<u32>>,
}

/// Follows the blocks of all processes. Rows may be in any order; calls of the same moment keep theirs.
pub fn follow(tables: &Tables) -> MemoryBlocks {
    let mut replay = Replay { calls: &tables.memory_calls, ..Replay::default() };
    let mut of_fault = vec![None; tables.faults.len()];
    if tables.memory_calls.is_empty() {
        return MemoryBlocks { blocks: Vec::new(), of_fault };
    }
    let steps = steps(tables);
    let mut steps = steps.into_iter().peekable();
    let mut take = |number: usize| {
        let fault = &tables.faults[number];
        while let Some((ts, step)) = steps.next_if(|(ts, _)| *ts <= fault.ts) {
            replay.step(ts, step);
        }
        of_fault[number] = replay.fault(fault);
    };
    if tables.faults.is_sorted_by_key(|fault| fault.ts) {
        (0..tables.faults.len()).for_each(take);
    } else {
        let mut faults: Vec<usize> = (0..tables.faults.len()).collect();
        faults.sort_by_key(|fault| tables.faults[*fault].ts);
        faults.into_iter().for_each(&mut take);
    }
    steps.for_each(|(ts, step)| replay.step(ts, step));
    MemoryBlocks { blocks: replay.blocks, of_fault }
}

/// What happens at a moment. Of the same moment, what is made comes first: it is there before it can be taken away.
#[derive(Clone, Copy, Debug)]
enum Step {
    Returns(usize),
    Ends(ProcessKey),
    Begins(usize),
}

impl Step {
    fn order(&self) -> u8 {
        match self {
            Self::Returns(_) => 0,
            Self::Ends(_) => 1,
            Self::Begins(_) => 2,
        }
    }
}

fn steps(tables: &Tables) -> Vec<(Nanos, Step)> {
    let mut steps = Vec::with_capacity(tables.memory_calls.len() * 2);
    for (number, call) in tables.memory_calls.iter().enumerate().filter(|(_, call)| call.result == 0) {
        let (begin, end) = ((call.ts, Step::Begins(number)), (call.ts + call.duration, Step::Returns(number)));
        match call.call {
            MemoryCallKind::Mmap => steps.push(end),
            MemoryCallKind::Munmap | MemoryCallKind::Madvise => steps.push(begin),
            MemoryCallKind::Mremap => steps.extend([begin, end]),
            MemoryCallKind::Brk => {}
        }
    }
    let ended = tables.exits.iter().filter(|exit| exit.last && !exit.running);
    steps.extend(ended.map(|exit| (exit.ts, Step::Ends(exit.process()))));
    let executed = tables.execs.iter().filter(|exec| !exec.present);
    steps.extend(executed.map(|exec| (exec.ts, Step::Ends(exec.process()))));
    steps.sort_by_key(|(ts, step)| (*ts, step.order()));
    steps
}

/// Whole pages of a range, as the kernel takes them: from, to.
fn pages(address: u64, length: Bytes) -> (u64, u64) {
    let from = address - address % PAGE_SIZE;
    (from, from.saturating_add(length.pages_up().bytes().0))
}

/// The part of a call's time that so many of its bytes have.
fn share(time: Nanos, bytes: u64, of: u64) -> Nanos {
    let share = u128::from(time.0) * u128::from(bytes.min(of)) / u128::from(of.max(1));
    Nanos(u64::try_from(share).unwrap_or(u64::MAX))
}

#[derive(Default)]
struct Replay<'a> {
    calls: &'a [MemoryCall],
    spaces: IntegerMap<ProcessKey, Space>,
    blocks: Vec<Block>,
    /// Bytes of each block that are mapped.
    mapped: Vec<u64>,
    /// What calls of mremap took away and have not put to its new place, by number of the call.
    moving: IntegerMap<usize, Vec<Part>>,
    /// The part that the last fault was in, while nothing has changed: faults come in rows of neighbours.
    last: Option<(ProcessKey, Part)>,
}

impl Replay<'_> {
    fn step(&mut self, ts: Nanos, step: Step) {
        let calls = self.calls;
        self.last = None;
        match step {
            Step::Ends(process) => {
                let parts = self.spaces.remove(&process).map(|mut space| space.take_all()).unwrap_or_default();
                parts.into_iter().for_each(|part| self.lose(part, ts, BlockEnd::WithProcess, None));
            }
            Step::Begins(number) => match calls[number].call {
                MemoryCallKind::Munmap => self.unmap(&calls[number]),
                MemoryCallKind::Madvise => self.advise(&calls[number]),
                MemoryCallKind::Mremap => self.leave(number, &calls[number]),
                MemoryCallKind::Mmap | MemoryCallKind::Brk => {}
            },
            Step::Returns(number) => match calls[number].call {
                MemoryCallKind::Mmap => self.map(ts, &calls[number]),
                MemoryCallKind::Mremap => self.arrive(ts, number, &calls[number]),
                _ => {}
            },
        }
    }

    fn block(&mut self, part: Part) -> &mut Block {
        &mut self.blocks[part.block as usize]
    }

    /// A part is gone, and with the last one its block.
    fn lose(&mut self, part: Part, ts: Nanos, end: BlockEnd, by: Option<u32>) {
        let mapped = &mut self.mapped[part.block as usize];
        *mapped = mapped.saturating_sub(part.bytes());
        if *mapped == 0 {
            let block = self.block(part);
            (block.closed, block.end, block.released_by) = (Some(ts), end, by);
        }
    }

    /// What lay where something new is mapped now.
    fn replace(&mut self, ts: Nanos, call: &MemoryCall, from: u64, to: u64) {
        let parts = self.spaces.get_mut(&call.process()).map(|space| space.take(from, to)).unwrap_or_default();
        parts.into_iter().for_each(|part| self.lose(part, ts, BlockEnd::Replaced, Some(call.tid)));
    }

    fn map(&mut self, ts: Nanos, call: &MemoryCall) {
        let (from, to) = pages(call.address, call.length);
        self.replace(ts, call, from, to);
        let Ok(block) = u32::try_from(self.blocks.len()) else { return };
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
            populated: call.argument & MAP_POPULATE != 0,
            map_time: call.duration,
            release_time: Nanos(0),
            discards: 0,
            faults: 0,
            untimed: 0,
            major: 0,
            by_kernel: 0,
            fault_time: Nanos(0),
        });
        self.mapped.push(to - from);
        self.spaces.entry(call.process()).or_default().put(Part { from, to, block });
    }

    fn unmap(&mut self, call: &MemoryCall) {
        let (from, to) = pages(call.address, call.length);
        let parts = self.spaces.get_mut(&call.process()).map(|space| space.take(from, to)).unwrap_or_default();
        for part in parts {
            self.block(part).release_time += share(call.duration, part.bytes(), to - from);
            self.lose(part, call.ts, BlockEnd::Unmapped, Some(call.tid));
        }
    }

    fn advise(&mut self, call: &MemoryCall) {
        let (discards, populates) = (DISCARDS.contains(&call.argument), POPULATES.contains(&call.argument));
        if !discards && !populates {
            return;
        }
        let (from, to) = pages(call.address, call.length);
        let parts = self.spaces.get(&call.process()).map(|space| space.between(from, to)).unwrap_or_default();
        for part in parts {
            let time = share(call.duration, part.bytes(), to - from);
            let block = self.block(part);
            if discards {
                block.release_time += time;
                block.discards += 1;
            } else {
                block.map_time += time;
                block.populated = true;
            }
        }
    }

    /// Where a recording does not tell it, the old place is taken for the new one: most blocks grow where they are.
    fn old_pages(call: &MemoryCall) -> (u64, u64) {
        pages(call.old_address.unwrap_or(call.address), call.old_length.unwrap_or_default())
    }

    fn leave(&mut self, number: usize, call: &MemoryCall) {
        let (from, to) = Self::old_pages(call);
        let Some(space) = self.spaces.get_mut(&call.process()) else { return };
        let stays = call.argument & MREMAP_DONTUNMAP != 0;
        let parts = if stays { space.between(from, to) } else { space.take(from, to) };
        self.moving.insert(number, parts);
    }

    fn arrive(&mut self, ts: Nanos, number: usize, call: &MemoryCall) {
        let (old_from, old_to) = Self::old_pages(call);
        let (from, to) = pages(call.address, call.length);
        self.replace(ts, call, from, to);
        let parts = self.moving.remove(&number).unwrap_or_default();
        let stays = call.argument & MREMAP_DONTUNMAP != 0;
        let moved = |address: u64| from.saturating_add(address.saturating_sub(old_from));
        let mut lost = Vec::new();
        for part in parts {
            // What lay last grows with the range.
            let end = if part.to == old_to { to } else { moved(part.to).min(to) };
            let new = Part { from: moved(part.from).min(end), to: end, ..part };
            let mapped = &mut self.mapped[part.block as usize];
            let before = if stays { 0 } else { part.bytes() };
            *mapped = mapped.saturating_add(new.bytes().saturating_sub(before));
            let length = *mapped;
            let block = &mut self.blocks[part.block as usize];
            block.length = block.length.max(Bytes(length));
            block.map_time += share(call.duration, part.bytes(), old_to - old_from);
            if !stays && new.bytes() < part.bytes() {
                lost.push(Part { to: part.from + (part.bytes() - new.bytes()), ..part });
            }
            self.spaces.entry(call.process()).or_default().put(new);
        }
        lost.into_iter().for_each(|part| self.lose(part, ts, BlockEnd::Unmapped, Some(call.tid)));
    }

    fn fault(&mut self, fault: &Fault) -> Option<u32> {
        let is_last = |(process, part): &(ProcessKey, Part)| *process == fault.process() && part.holds(fault.address);
        let part = match self.last.filter(is_last) {
            Some((_, part)) => part,
            None => self.spaces.get(&fault.process())?.part_at(fault.address)?,
        };
        self.last = Some((fault.process(), part));
        let number = part.block;
        let block = &mut self.blocks[number as usize];
        block.faults += 1;
        block.untimed += u64::from(fault.duration.is_none());
        block.major += u64::from(fault.kind == FaultKind::Major);
        block.by_kernel += u64::from(fault.kernel);
        block.fault_time += fault.duration.unwrap_or_default();
        Some(number)
    }
}
