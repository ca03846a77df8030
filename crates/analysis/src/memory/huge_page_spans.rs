//! Spans of memory that would each fit a huge page, and which of their pages a process touched one by one.
//!
//! Owns the replay of first touches by span: ranges of the size of a huge page, aligned to it, in one anonymous private mapping or in
//! the heap of brk. Leaves mappings to [`crate::memory::memory_blocks`], what programs say about huge pages to
//! [`crate::memory::huge_page_advice`], what it costs and whether it is bad to [`crate::findings`].
//!
//! - Only minor faults count: what comes from swap had been there. Of each page only the first fault counts; a page that is read
//!   first and written then has another one, in which the kernel replaces the page of zeros.
//! - How a huge page is recognised: it is one fault, after which no other page of its span faults. So a span with faults in nearly all its
//!   pages had none when they were touched, and one with a single fault may have had one or may have been touched sparsely: that is
//!   not told apart, and need not be.
//! - A span counts from when its mapping holds it as a whole. The heap grows in small steps, so that is often later than its first
//!   touch: see [`Span::was_whole`].
//! - Not spans: shared memory and mapped files, threads' stacks (`MAP_STACK`: kernels of 6.7 and later give those no huge pages),
//!   what was mapped before the recording, what a child has from its parent.

use crate::integer_hash::IntegerMap;
use crate::memory::address_ranges::{AddressRanges, OwnedRange};
use crate::memory::huge_page_advice::{AdviceReplay, HugePageAdvice};
use crate::memory::memory_blocks;
use crate::memory::memory_calls::heap_pages;
use crate::memory::memory_events::{Event, MemoryEvents, Step};
use slowpath_recording::Manifest;
use slowpath_tables::{Bytes, Fault, FaultKind, MemoryCall, MemoryCallKind, Nanos, PAGE_SIZE, Pages, ProcessKey};

/// Share of its pages from which on a span is touched densely. A huge page makes the others resident too: with nine tenths that is a
/// ninth more than was used, at most. The kernel itself is bolder, khugepaged by default takes spans with one page
/// (`max_ptes_none`); but a program that leaves a tenth of a span alone may have its reasons.
pub const LEAST_TOUCHED: f64 = 0.9;

/// Sizes that are believed of a huge page: with pages of 4 KiB it is 2 MiB everywhere but on s390 (1 MiB).
const SIZES: std::ops::RangeInclusive<u64> = 16 * PAGE_SIZE..=32 << 20;

/// What a span lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mapping {
    /// A block: its number in [`memory_blocks::MemoryBlocks`].
    Block(u32),
    /// A heap of brk: a process has a new one with each program that it executes.
    Heap(u32),
}

/// A span that was touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its process.
    pub process: ProcessKey,
    /// What it lies in.
    pub mapping: Mapping,
    /// Its first address.
    pub address: u64,
    /// Call stack of the mmap, or of the brk that made room for the page that was touched first: `stacks.id`.
    pub stack: Option<u32>,
    /// Pages of which a first touch was seen.
    pub touched: Pages,
    /// What the program said about huge pages there before the first touch.
    pub request: HugePageAdvice,
    /// Whether its mapping held it as a whole when it was touched first: only then the kernel could give a huge page at once.
    pub was_whole: bool,
    /// Whether its mapping held it as a whole at that time or later.
    pub is_whole: bool,
    /// Whether faults in it belong to something else.
    pub has_others: bool,
}

/// All spans of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// The spans, in the order of their first touches.
    pub spans: Vec<Span>,
    /// For each row of `faults` the span of which it was the first touch of a page; empty where nothing was followed.
    pub of_fault: Vec<Option<u32>>,
    /// Size of a span.
    pub size: Bytes,
}

impl Spans {
    /// Pages of a span.
    pub fn pages(&self) -> Pages {
        Pages(self.size.0 / PAGE_SIZE)
    }

    /// Whether a span lies in its mapping as a whole and nearly all of it was touched page by page.
    pub fn is_dense(&self, span: &Span) -> bool {
        span.is_whole && span.touched.0 >= least(self.size)
    }
}

/// The size of huge pages where a recording was made; `None` where it does not tell, where there are none, and for nonsense.
pub fn size(manifest: &Manifest) -> Option<Bytes> {
    let size = manifest.host.huge_pages.as_ref()?.size;
    (size.0.is_power_of_two() && SIZES.contains(&size.0)).then_some(size)
}

/// Pages from which on a span is dense.
fn least(size: Bytes) -> u64 {
    ((size.0 / PAGE_SIZE) as f64 * LEAST_TOUCHED).ceil() as u64
}

/// Follows the spans of all processes. `is_others` says of a row of `faults` that it belongs to something else: its span has not
/// stayed.
pub fn follow(events: &MemoryEvents<'_>, size: Bytes, is_others: impl Fn(usize) -> bool) -> Spans {
    let tables = events.tables();
    if tables.memory_calls.is_empty() {
        return Spans { size, ..Spans::default() };
    }
    let mut replay = Replay {
        calls: &tables.memory_calls,
        size: size.0,
        page: tables.manifest.host.page(),
        blocks: memory_blocks::Replay::new(tables),
        requests: AdviceReplay::new(tables),
        heaps: IntegerMap::default(),
        heap_count: 0,
        numbers: IntegerMap::default(),
        spans: Vec::new(),
        touched: Vec::new(),
        last: None,
    };
    let mut of_fault = vec![None; tables.faults.len()];
    events.for_each(|event| match event {
        Event::Step(ts, step) => replay.step(ts, step),
        Event::Fault(number) => of_fault[number] = replay.fault(&tables.faults[number], || is_others(number)),
        Event::Sample(_) => {}
    });
    Spans { spans: replay.spans, of_fault, size }
}

struct Replay<'a> {
    calls: &'a [MemoryCall],
    size: u64,
    /// Bytes of one of the kernel's pages.
    page: u64,
    blocks: memory_blocks::Replay<'a>,
    requests: AdviceReplay<'a>,
    /// The heap of each process: its number, and its parts, each owned by the call of brk that made room for it.
    heaps: IntegerMap<ProcessKey, (u32, AddressRanges)>,
    heap_count: u32,
    /// Spans by mapping and number of the range of addresses.
    numbers: IntegerMap<(Mapping, u64), u32>,
    spans: Vec<Span>,
    /// For each span a bit for each page.
    touched: Vec<Box<[u64]>>,
    /// The part of a span that the last fault was in, while nothing has changed; its owner is the span.
    last: Option<(ProcessKey, OwnedRange)>,
}

impl Replay<'_> {
    fn step(&mut self, ts: Nanos, step: Step) {
        self.last = None;
        self.requests.step(step);
        match step {
            Step::Ends(process) => _ = self.heaps.remove(&process),
            Step::Begins(number) | Step::Returns(number) if self.calls[number].call == MemoryCallKind::Brk => {
                self.brk(number);
            }
            // Memory that a child has from its parent has no spans: it was touched before.
            Step::Begins(_) | Step::Returns(_) | Step::Forks { .. } | Step::Looks(_) => {}
        }
        self.blocks.step(ts, step);
    }

    fn brk(&mut self, number: usize) {
        let call = &self.calls[number];
        let (from, to) = heap_pages(call, self.page);
        let count = &mut self.heap_count;
        let (_, heap) = self.heaps.entry(call.process()).or_insert_with(|| {
            *count += 1;
            (*count, AddressRanges::default())
        });
        heap.take(from, to);
        let owner = u32::try_from(number).ok().filter(|_| !call.shrinks);
        owner.into_iter().for_each(|owner| heap.put(OwnedRange { from, to, owner }));
    }

    /// The anonymous private mapping that an address is in, the part of it, and the stack that made that.
    fn mapping_at(&self, process: ProcessKey, address: u64) -> Option<(Mapping, OwnedRange, Option<u32>)> {
        if let Some((part, block)) = self.blocks.at(process, address) {
            let is_meant = !block.is_stack && !block.is_shared;
            return is_meant.then_some((Mapping::Block(part.owner), part, block.stack));
        }
        let (number, heap) = self.heaps.get(&process)?;
        let part = heap.part_at(address)?;
        Some((Mapping::Heap(*number), part, self.calls.get(part.owner as usize)?.stack))
    }

    /// Whether a mapping holds a span as a whole now.
    fn is_whole(&self, process: ProcessKey, mapping: Mapping, from: u64) -> bool {
        let to = from.saturating_add(self.size);
        match mapping {
            Mapping::Block(number) => {
                let part = self.blocks.at(process, from).map(|(part, _)| part);
                part.is_some_and(|part| part.owner == number && part.to >= to)
            }
            Mapping::Heap(_) => {
                let parts = self.heaps.get(&process).map(|(_, heap)| heap.between(from, to)).unwrap_or_default();
                parts.iter().map(|part| part.bytes()).sum::<u64>() == self.size
            }
        }
    }

    /// The span of an address.
    fn find(&mut self, fault: &Fault) -> Option<u32> {
        let process = fault.process();
        let (mapping, part, stack) = self.mapping_at(process, fault.address)?;
        let from = fault.address - fault.address % self.size;
        let number = match self.numbers.get(&(mapping, from)) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.spans.len()).ok()?;
                let is_whole = self.is_whole(process, mapping, from);
                self.spans.push(Span {
                    process,
                    mapping,
                    address: from,
                    stack,
                    touched: Pages(0),
                    request: self.requests.at(process, fault.ts, fault.address),
                    was_whole: is_whole,
                    is_whole,
                    has_others: false,
                });
                let words = (self.size / PAGE_SIZE).div_ceil(u64::from(u64::BITS)) as usize;
                self.touched.push(vec![0; words].into_boxed_slice());
                self.numbers.insert((mapping, from), number);
                number
            }
        };
        let within =
            OwnedRange { from: part.from.max(from), to: part.to.min(from.saturating_add(self.size)), owner: number };
        self.last = Some((process, within));
        Some(number)
    }

    fn fault(&mut self, fault: &Fault, is_others: impl FnOnce() -> bool) -> Option<u32> {
        if fault.kind != FaultKind::Minor {
            return None;
        }
        let is_last =
            |(process, part): &(ProcessKey, OwnedRange)| *process == fault.process() && part.holds(fault.address);
        let number = match self.last.filter(is_last) {
            Some((_, part)) => part.owner,
            None => self.find(fault)?,
        };
        let span = self.spans.get_mut(number as usize)?;
        if is_others() {
            span.has_others = true;
            return None;
        }
        let page = (fault.address - span.address) / self.page;
        let word = self.touched.get_mut(number as usize)?.get_mut((page / u64::from(u64::BITS)) as usize)?;
        let bit = 1 << (page % u64::from(u64::BITS));
        if *word & bit != 0 {
            return None;
        }
        *word |= bit;
        span.touched += Bytes(self.page).pages_up();
        if !span.is_whole && span.touched.0 >= least(Bytes(self.size)) {
            let (process, mapping, address) = (span.process, span.mapping, span.address);
            let is_whole = self.is_whole(process, mapping, address);
            self.spans.get_mut(number as usize)?.is_whole = is_whole;
        }
        Some(number)
    }
}
