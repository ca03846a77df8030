//! No fault and no call is counted twice, whatever programs do with their memory.

use super::*;
use crate::findings::{heap_trim_churn, thp_missed, transient_large_allocation, unused_touched_pages};
use crate::memory::memory_rows::{fault, memory_call};
use proptest::prelude::*;
use slowpath_recording::{HugePages, Tables};
use slowpath_tables::{Bytes, Fault, LookMoment, MemoryCall, MemoryCallKind, Nanos, PAGE_SIZE, PageContent};

/// Pages of a block, of an arena and of what the heap grows by.
const PAGES: u64 = 40;
const BLOCKS: u64 = 0x7000_0000_0000;
const ARENA: u64 = 0x6000_0000_0000;
const HEAP: u64 = 0x5000_0000_0000;
/// Pages of a huge page here: two of them fit into a block.
const HUGE: u64 = 16;

/// What a round of a program does. Numbers of pages are of those that it touches.
#[derive(Clone, Debug)]
enum Round {
    /// A block: touched, given back, touched again, unmapped.
    Block { place: u64, touched: u64, advice: Option<u32>, again: u64, unmapped: bool },
    /// Pages of an arena: touched, given back.
    Arena { from: u64, touched: u64, advice: u32 },
    /// The heap grows, is touched, shrinks.
    Heap { touched: u64, shrinks: bool },
    /// Advice that reaches beyond a block: over its neighbours.
    Across { place: u64 },
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let advice = || prop_oneof![Just(4u32), Just(8)];
    let round = prop_oneof![
        3 => (0..2u64, 0..PAGES, prop::option::of(advice()), 0..PAGES, prop::bool::weighted(0.9))
            .prop_map(|(place, touched, advice, again, unmapped)| Round::Block { place, touched, advice, again, unmapped }),
        3 => (0..PAGES, 0..PAGES, advice()).prop_map(|(from, touched, advice)| Round::Arena { from, touched, advice }),
        3 => (0..PAGES, prop::bool::weighted(0.9)).prop_map(|(touched, shrinks)| Round::Heap { touched, shrinks }),
        1 => (0..2u64).prop_map(|place| Round::Across { place }),
    ];
    prop::collection::vec(round, 0..60)
}

#[derive(Default)]
struct Program {
    tables: Tables,
    now: u64,
    heap: u64,
}

impl Program {
    fn call(&mut self, call: MemoryCallKind, address: u64, pages: u64, argument: u32) {
        self.now += 100;
        self.tables.memory_calls.push(MemoryCall {
            duration: Nanos(50),
            shrinks: call == MemoryCallKind::Brk && argument == 1,
            argument: if call == MemoryCallKind::Brk { 0 } else { argument },
            ..memory_call(call, self.now, address, pages * PAGE_SIZE)
        });
    }

    /// Pages of a range are looked at, and all of them are there.
    fn look(&mut self, moment: LookMoment, address: u64, zero: u64) {
        self.now += 100;
        self.tables.page_contents.push(PageContent {
            ts: Nanos(self.now),
            duration: Nanos(10),
            pid: 7,
            start: Nanos(1),
            tid: 7,
            moment,
            address,
            stride: Bytes(PAGE_SIZE),
            pages: PAGES as u32,
            present: u64::MAX,
            zero,
        });
    }

    fn touch(&mut self, address: u64, pages: u64) {
        for page in 0..pages {
            self.now += 100;
            self.tables.faults.push(Fault { duration: Some(Nanos(20)), ..fault(self.now, address + page * PAGE_SIZE) });
        }
    }

    fn round(&mut self, round: &Round) {
        let block = |place: u64| BLOCKS + place * PAGES * PAGE_SIZE;
        match *round {
            Round::Block { place, touched, advice, again, unmapped } => {
                self.call(MemoryCallKind::Mmap, block(place), PAGES, 0x22);
                self.touch(block(place), touched);
                if let Some(advice) = advice {
                    self.call(MemoryCallKind::Madvise, block(place), PAGES, advice);
                }
                self.touch(block(place), again);
                if unmapped {
                    self.look(LookMoment::Munmap, block(place), !0 << (touched / 4));
                    self.call(MemoryCallKind::Munmap, block(place), PAGES, 0);
                }
            }
            Round::Arena { from, touched, advice } => {
                self.touch(ARENA + from * PAGE_SIZE, touched);
                self.call(MemoryCallKind::Madvise, ARENA, 2 * PAGES, advice);
            }
            Round::Heap { touched, shrinks } => {
                self.heap += PAGES;
                let end = HEAP + self.heap * PAGE_SIZE;
                self.call(MemoryCallKind::Brk, end, PAGES, 0);
                self.touch(end - PAGES * PAGE_SIZE, touched);
                if shrinks {
                    self.heap -= PAGES;
                    self.call(MemoryCallKind::Brk, HEAP + self.heap * PAGE_SIZE, PAGES, 1);
                }
            }
            Round::Across { place } => self.call(MemoryCallKind::Madvise, block(place) - PAGE_SIZE, PAGES + 2, 4),
        }
    }
}

fn tables_of(rounds: &[Round]) -> Tables {
    let mut program = Program::default();
    let size = Bytes(HUGE * PAGE_SIZE);
    program.tables.manifest.host.huge_pages =
        Some(HugePages { enabled: "madvise".to_owned(), defrag: "madvise".to_owned(), size });
    rounds.iter().for_each(|round| program.round(round));
    for address in [BLOCKS, BLOCKS + PAGES * PAGE_SIZE, ARENA, HEAP] {
        program.look(LookMoment::End, address, !0 << 3);
    }
    program.tables
}

/// Faults of each finding: of blocks, of pages that came back, of blocks with pages that were never used, of missed huge pages.
type Faults = [usize; 4];

/// For which costs never used pages are a finding.
type Rule = fn(&OversizedCost, &CostShare) -> bool;

/// Faults of each finding, times each is counted, time of all calls that are counted.
fn counted(tables: &Tables, is_oversized: Rule) -> (Faults, Vec<u32>, u64) {
    let facts = LaunchFacts::new(tables);
    let call_stacks = CallStacks::new(tables);
    let memory = MemoryUse::of(&facts, &call_stacks, is_oversized);
    let faults = &memory.faults();
    let mut times = vec![0; faults.rows.len()];
    let (mut of_blocks, mut of_churn, mut of_missed, mut calls) = (0, 0, 0, 0.0);
    let numbers = transient_large_allocation::cost::faults_of(&memory.transient, &memory.blocks);
    for (group, numbers) in memory.transient.iter().zip(numbers) {
        let cost = transient_large_allocation::cost::cost(group, &memory.blocks, faults, &numbers);
        calls += cost.map_time + cost.release_time;
        of_blocks += numbers.len();
        numbers.iter().for_each(|number| times[*number] += 1);
    }
    let numbers = heap_trim_churn::cost::faults_of(&memory.churn, &memory.released);
    for (group, numbers) in memory.churn.iter().zip(numbers) {
        let cost = heap_trim_churn::cost::cost(group, &memory.released, faults, &numbers);
        assert_eq!(cost.faults.count, numbers.len() as u64);
        calls += cost.release_time + cost.grow_time;
        of_churn += numbers.len();
        numbers.iter().for_each(|number| times[*number] += 1);
    }
    let mut of_oversized = 0;
    for (group, cost) in &memory.oversized {
        assert!(cost.faults.count == group.faults.len() as u64 && cost.unused.high <= 1.0);
        assert!(cost.total.value * 1e6 <= cost.faults.time() + 1e-6);
        of_oversized += group.faults.len();
        group.faults.iter().for_each(|number| times[*number] += 1);
    }
    let numbers = thp_missed::cost::faults_of(&memory.missed, &memory.spans);
    for (group, numbers) in memory.missed.iter().zip(numbers) {
        let cost = thp_missed::cost::cost(&memory.spans, faults, &numbers, None);
        let pages = group.spans.len() as u64 * HUGE - group.untouched.0;
        assert_eq!((cost.faults.count, pages), (numbers.len() as u64, numbers.len() as u64));
        of_missed += numbers.len();
        numbers.iter().for_each(|number| times[*number] += 1);
    }
    ([of_blocks, of_churn, of_oversized, of_missed], times, calls as u64)
}

#[test]
fn what_happens_to_pages_of_a_block_that_is_mapped_anew_each_time_is_the_blocks() {
    let block = Round::Block { place: 0, touched: 30, advice: Some(4), again: 20, unmapped: true };
    let counts = |round: Round, rounds: usize| {
        let (faults, _, calls) = counted(&tables_of(&vec![round; rounds]), unused_touched_pages::is_one);
        (faults, calls)
    };
    assert_eq!(counts(block, 20), ([20 * 50, 0, 0, 0], 20 * 150));
    // The same in a block that stays: its pages come back.
    let arena = Round::Arena { from: 0, touched: 30, advice: 4 };
    assert_eq!(counts(arena, 20), ([0, 19 * 30, 0, 0], 19 * 50));
    let heap = Round::Heap { touched: 30, shrinks: true };
    // Thirty of the forty pages by which it grows had been given back.
    assert_eq!(counts(heap, 20), ([0, 19 * 30, 0, 0], 19 * 50 + 19 * 37));
    // A heap that stays: 800 pages are 50 spans, each of them touched as a whole.
    let heap = Round::Heap { touched: 40, shrinks: false };
    assert_eq!(counts(heap, 20), ([0, 0, 0, 800], 0));
}

#[test]
fn what_was_never_used_is_counted_so_where_that_is_a_finding_and_else_as_spans() {
    // Six blocks are no pattern of their own; two spans of each are.
    let block = Round::Block { place: 0, touched: 40, advice: None, again: 0, unmapped: true };
    let tables = tables_of(&vec![block; 6]);
    let faults = |rule: Rule| counted(&tables, rule).0;
    assert_eq!(faults(unused_touched_pages::is_one), [0, 0, 0, 6 * 32]);
    assert_eq!(faults(|_, _| true), [0, 0, 6 * 40, 0]);
}

proptest! {
    #[test]
    fn each_fault_belongs_to_one_finding_at_most_and_no_call_is_counted_twice(rounds in rounds()) {
        let tables = tables_of(&rounds);
        let calls: u64 = tables.memory_calls.iter().map(|call| call.duration.0).sum();
        // Also where never used pages are a finding from the first on.
        let rules: [Rule; 2] = [unused_touched_pages::is_one, |_, _| true];
        for rule in rules {
            let (_, times, counted) = counted(&tables, rule);
            prop_assert!(times.iter().all(|times| *times <= 1));
            prop_assert!(counted <= calls, "{} of {}", counted, calls);
        }
    }
}
