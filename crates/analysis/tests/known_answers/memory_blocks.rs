//! Blocks of memory on recordings written as text, and on random calls against a model of single pages.

use crate::memory_rows::{fault, memory_call};
use proptest::prelude::*;
use slowpath_analysis::memory::memory_blocks::{ArgumentPlaces, Block, BlockEnd, BlockPlace, MemoryBlocks, follow};
use slowpath_analysis::memory::{fork_faults, memory_events::MemoryEvents};
use slowpath_analysis::time::off_cpu_times::{self, OffCpuTimes};
use slowpath_recording::Tables;
use slowpath_tables::{Bytes, Fault, MemoryCall, MemoryCallKind, Nanos, PAGE_SIZE};
use std::collections::HashMap;

const CALLS: &str = "ts duration pid start tid call address length old_length old_address argument result";

fn followed(calls: &str, rest: &str) -> (MemoryBlocks, Tables) {
    let tables = Tables::from_text(&format!("== memory_calls\n{CALLS}\n{calls}\n{rest}")).unwrap();
    let events = MemoryEvents::new(&tables);
    (follow(&events, &fork_faults::follow(&events), &off_cpu_times::follow(&tables)), tables)
}

/// Length in pages, begin and end, how it ended, faults.
fn in_short(block: &Block) -> (u64, u64, Option<u64>, BlockEnd, u64) {
    (block.length.0 / PAGE_SIZE, block.opened.0, block.closed.map(|ts| ts.0), block.end, block.faults)
}

fn all(memory: &MemoryBlocks) -> Vec<(u64, u64, Option<u64>, BlockEnd, u64)> {
    memory.blocks.iter().map(in_short).collect()
}

#[test]
fn a_block_lasts_from_the_return_of_mmap_to_the_begin_of_munmap_and_has_the_faults_between() {
    let (memory, _) = followed(
        "
100 10 7 1 7 mmap   0x10000 8192 - - 0x22 0
200 40 7 1 8 munmap 0x10000 5000 - - 0    0
",
        "
== faults
ts  duration pid start tid address kind  kernel
105 1        7   1     7   0x10000 minor false
110 3        7   1     7   0x10000 minor false
120 -        7   1     7   0x11fff minor true
130 5        7   1     7   0x12000 minor false
140 9        7   1     7   0x11000 major false
200 1        7   1     7   0x10000 minor false
",
    );
    assert_eq!(all(&memory), [(2, 110, Some(200), BlockEnd::Unmapped, 3)]);
    assert_eq!(memory.of_fault, [None, Some(0), Some(0), None, Some(0), None]);
    let block = &memory.blocks[0];
    assert_eq!((block.untimed, block.major, block.by_kernel, block.fault_time), (1, 1, 1, Nanos(12)));
    assert_eq!((block.map_time, block.release_time, block.time()), (Nanos(10), Nanos(40), Nanos(62)));
    assert_eq!((block.mapped_by, block.released_by, block.lifetime()), (7, Some(8), Some(Nanos(90))));
}

#[test]
fn arguments_of_samples_point_into_the_blocks_that_are_mapped_at_that_moment() {
    let (memory, tables) = followed(
        "
10 1 7 1 7 mmap   0x10000 8192 - - 0x22 0
20 1 7 1 7 mmap   0x20000 8192 - - 0x22 0
50 1 7 1 7 munmap 0x10000 8192 - - 0    0
",
        "
== faults
ts pid start address kind
30 7   1     0x10000 minor
== cpu_samples
ts pid start first_argument second_argument copies
60 7   1     0x10000        0x20000         false
30 7   1     0x10010        0x21fff         true
11 7   1     0x12000        0x11000         false
15 8   1     0x10000        0x10000         false
16 7   1     -              -               -
",
    );
    let place = |block, offset| Some(BlockPlace { block, offset });
    let at = |sample: usize, first, second| ArgumentPlaces { sample, first, second };
    assert_eq!(
        memory.arguments,
        [at(2, None, place(0, 0x1000)), at(1, place(0, 0x10), place(1, 0x1fff)), at(0, None, place(1, 0))]
    );
    assert_eq!((tables.cpu_samples.len(), memory.of_fault), (5, vec![Some(0)]));
}

#[test]
fn a_block_reaches_to_the_end_of_its_last_page_on_a_kernel_with_large_pages() {
    let host = r#"{"kernel": "", "machine": "", "page_size": 16384, "cpus": 1, "memory_bytes": 0}"#;
    let calls = "10 1 7 1 7 mmap 0x10000 20000 - - 0x22 0\n50 1 7 1 7 munmap 0x10000 20000 - - 0 0\n";
    let faults = "== faults\nts pid start address kind\n20 7 1 0x10000 minor\n30 7 1 0x16000 minor\n";
    let (memory, _) = followed(calls, &format!("{faults}== manifest\n{{\"host\": {host}}}\n"));
    // 20,000 bytes are two pages of 16 KiB, which tables count as 8.
    assert_eq!(all(&memory), [(8, 11, Some(50), BlockEnd::Unmapped, 2)]);
}

#[test]
fn a_block_ends_with_its_last_byte_and_a_call_counts_for_blocks_by_their_bytes() {
    // One block of four pages is touched, loses its ends, then, with the whole of the second, its middle.
    let (memory, _) = followed(
        "
10 1  7 1 7 mmap   0x10000 16384 - - 0x22 0
20 1  7 1 7 mmap   0x14000 8192  - - 0x22 0
30 8  7 1 7 munmap 0x10000 4096  - - 0    0
40 12 7 1 7 munmap 0x13000 12288 - - 0    0
50 6  7 1 7 munmap 0x11000 8192  - - 0    0
",
        "
== faults
ts pid start address kind
15 7   1     0x10000 minor
35 7   1     0x10000 minor
36 7   1     0x11000 minor
45 7   1     0x13000 minor
46 7   1     0x14000 minor
47 7   1     0x12000 minor
",
    );
    assert_eq!(all(&memory), [(4, 11, Some(50), BlockEnd::Unmapped, 3), (2, 21, Some(40), BlockEnd::Unmapped, 0)]);
    assert_eq!((memory.blocks[0].release_time, memory.blocks[1].release_time), (Nanos(8 + 4 + 6), Nanos(8)));
    assert_eq!(memory.of_fault, [Some(0), None, Some(0), None, None, Some(0)]);
}

#[test]
fn what_is_unmapped_before_the_first_touch_was_there_to_find_a_place_and_later_parts_were_the_blocks() {
    // 12 pages of which 4 stay: 2 before and 6 behind are cut off, then one more after a touch.
    let (memory, _) = followed(
        "
10 1 7 1 7 mmap   0x10000 49152 - - 0x22 0
20 1 7 1 7 munmap 0x10000 8192  - - 0    0
21 1 7 1 7 munmap 0x16000 24576 - - 0    0
30 1 7 1 7 munmap 0x12000 4096  - - 0    0
40 1 7 1 7 munmap 0x13000 12288 - - 0    0
",
        "== faults\nts pid start address kind\n25 7 1 0x12000 minor\n",
    );
    assert_eq!(all(&memory), [(4, 11, Some(40), BlockEnd::Unmapped, 1)]);
    assert_eq!(memory.blocks[0].release_time, Nanos(4));
}

#[test]
fn faults_that_a_fork_caused_are_counted_apart_and_belong_to_no_block() {
    let (memory, _) = followed(
        "
10 1 7 1 7 mmap   0x10000 8192 - - 0x22 0
60 1 7 1 7 munmap 0x10000 8192 - - 0    0
",
        "
== forks
ts parent_pid parent_start pid start tid thread
30 7          1            8   30    8   false
== faults
ts duration pid start address kind
20 2        7   1     0x10000 minor
40 5        7   1     0x10000 minor
41 2        7   1     0x11000 minor
45 5        8   30    0x10000 minor
",
    );
    assert_eq!(all(&memory), [(2, 11, Some(60), BlockEnd::Unmapped, 2)]);
    assert_eq!(memory.of_fault, [Some(0), None, Some(0), None]);
    assert_eq!((memory.blocks[0].fault_time, memory.blocks[0].fork_faults), (Nanos(4), 1));
}

#[test]
fn a_slow_fault_alone_at_a_multiple_of_2_mib_may_be_a_huge_page_and_a_quick_one_is_none() {
    // 8 MiB from the middle of a huge page on: small pages at both ends, three huge ones between; the last is read first.
    let mut faults = "== faults\nts duration pid start address kind\n".to_owned();
    for page in 0..256u64 {
        faults += &format!("{} 500 7 1 {} minor\n", 20 + page, 0x10_0000 + page * PAGE_SIZE);
        faults += &format!("{} 500 7 1 {} minor\n", 2000 + page, 0x80_0000 + page * PAGE_SIZE);
    }
    for (ts, duration, address) in
        [(400, 90_000, 0x20_0000), (401, 80_000, 0x40_1000), (402, 400, 0x60_0000), (403, 70_000, 0x60_0000)]
    {
        faults += &format!("{ts} {duration} 7 1 {address} minor\n");
    }
    let (memory, _) = followed("10 1 7 1 7 mmap 0x100000 8388608 - - 0x22 0\n", &faults);
    let block = &memory.blocks[0];
    assert_eq!((block.faults, block.brought.huge_pages, block.brought.bytes), (516, 3, Bytes(8 << 20)));
    // As many quick ones are pages of a stride, and what is smaller has no huge page, however slow a fault is.
    let quick = "== faults\nts duration pid start address kind\n20 900 7 1 0x200000 minor\n21 900 7 1 0x400000 minor\n";
    let (memory, _) = followed("10 1 7 1 7 mmap 0x100000 8388608 - - 0x22 0\n", quick);
    assert_eq!((memory.blocks[0].brought.huge_pages, memory.blocks[0].brought.bytes), (0, Bytes(2 * PAGE_SIZE)));
    let slow = "== faults\nts duration pid start address kind\n20 90000 7 1 0x200000 minor\n";
    let (memory, _) = followed("10 1 7 1 7 mmap 0x200000 2093056 - - 0x22 0\n", slow);
    assert_eq!((memory.blocks[0].brought.huge_pages, memory.blocks[0].brought.bytes), (0, Bytes(PAGE_SIZE)));
    // Nor has what the program wants none for (MADV_NOHUGEPAGE); asked for (MADV_HUGEPAGE), it has one.
    for (advice, huge_pages) in [(15, 0), (14, 1)] {
        let calls = format!(
            "10 1 7 1 7 mmap 0x200000 4194304 - - 0x22 0\n15 1 7 1 7 madvise 0x200000 4194304 - - {advice} 0\n"
        );
        let (memory, _) = followed(&calls, slow);
        assert_eq!(memory.blocks[0].brought.huge_pages, huge_pages, "{advice}");
    }
}

#[test]
fn mremap_moves_grows_and_shrinks_a_block() {
    let (memory, _) = followed(
        "
10 1 7 1 7 mmap   0x10000 8192  -     -       0x22 0
20 5 7 1 7 mremap 0x80000 16384 8192  0x10000 1    0
30 3 7 1 7 mremap 0x80000 4096  16384 0x80000 1    0
40 1 7 1 7 mmap   0x10000 8192  -     -       0x22 0
50 2 7 1 7 munmap 0x80000 4096  -     -       0    0
",
        "
== faults
ts pid start address kind
15 7   1     0x11000 minor
25 7   1     0x81000 minor
26 7   1     0x83000 minor
27 7   1     0x11000 minor
35 7   1     0x81000 minor
45 7   1     0x11000 minor
",
    );
    assert_eq!(all(&memory), [(4, 11, Some(50), BlockEnd::Unmapped, 3), (2, 41, None, BlockEnd::Never, 1)]);
    assert_eq!(memory.of_fault, [Some(0), Some(0), Some(0), None, None, Some(1)]);
    assert_eq!(memory.blocks[0].map_time, Nanos(1 + 5 + 3));
}

#[test]
fn an_older_recording_without_the_old_address_knows_blocks_that_grow_where_they_are() {
    let (memory, _) = followed(
        "
10 1 7 1 7 mmap   0x10000 8192  -    - 0x22 0
20 5 7 1 7 mremap 0x10000 16384 8192 - 1    0
30 1 7 1 7 munmap 0x10000 16384 -    - 0    0
",
        "",
    );
    assert_eq!(all(&memory), [(4, 11, Some(30), BlockEnd::Unmapped, 0)]);
}

#[test]
fn an_address_that_one_thread_frees_and_another_is_given_belongs_to_the_right_block() {
    // Both calls last: munmap has removed the area and frees its pages while mmap gives the address out again.
    let (memory, _) = followed(
        "
10  1  7 1 7 mmap   0x10000 4096 - - 0x22 0
90  30 7 1 8 mmap   0x10000 4096 - - 0x22 0
100 99 7 1 7 munmap 0x10000 4096 - - 0    0
300 1  7 1 8 munmap 0x10000 4096 - - 0    0
",
        "
== faults
ts  pid start address kind
50  7   1     0x10000 minor
150 7   1     0x10000 minor
",
    );
    assert_eq!(all(&memory), [(1, 11, Some(100), BlockEnd::Unmapped, 1), (1, 120, Some(300), BlockEnd::Unmapped, 1)]);
}

#[test]
fn processes_are_apart_also_a_child_that_inherits_and_unmaps() {
    let (memory, _) = followed(
        "
10 1 7 1  7 mmap   0x10000 4096 - - 0x22 0
30 1 8 20 8 munmap 0x10000 4096 - - 0    0
40 1 9 5  9 mmap   0x10000 4096 - - 0x22 0
50 1 9 5  9 munmap 0x10000 4096 - - 0    0
60 1 7 1  7 munmap 0x10000 4096 - - 0    0
",
        "
== forks
ts parent_pid parent_start pid start tid thread
20 7          1            8   20    8   false
== faults
ts pid start address kind
25 8   20    0x10000 minor
45 9   5     0x10000 minor
55 7   1     0x10000 minor
",
    );
    assert_eq!(all(&memory), [(1, 11, Some(60), BlockEnd::Unmapped, 1), (1, 41, Some(50), BlockEnd::Unmapped, 1)]);
    assert_eq!(memory.of_fault, [None, Some(1), Some(0)]);
}

#[test]
fn blocks_end_with_their_process_with_its_image_and_when_something_is_mapped_over_them() {
    let (memory, _) = followed(
        "
10 1 7 1 7 mmap 0x10000 4096 - - 0x22 0
11 1 8 1 8 mmap 0x10000 4096 - - 0x22 0
12 1 9 1 9 mmap 0x10000 4096 - - 0x22 0
13 1 9 1 9 mmap 0x20000 4096 - - 0x22 0
50 1 9 1 9 mmap 0x10000 4096 - - 0x12 0
",
        "
== exits
ts pid start tid last  running
40 7   1     77  false false
45 7   1     7   true  false
99 9   1     9   true  true
== execs
ts present pid start filename
9  true    8   1     a
41 false   8   1     b
",
    );
    assert_eq!(
        all(&memory),
        [
            (1, 11, Some(45), BlockEnd::WithProcess, 0),
            (1, 12, Some(41), BlockEnd::WithProcess, 0),
            (1, 13, Some(51), BlockEnd::Replaced, 0),
            (1, 14, None, BlockEnd::Never, 0)
        ]
    );
}

#[test]
fn failed_calls_files_the_heap_and_what_was_there_before_are_no_blocks() {
    let (memory, _) = followed(
        "
10 1 7 1 7 mmap   0x0     4096 - - 0x22 -12
11 1 7 1 7 mmap   0x10000 4096 - - 0x2  0
12 1 7 1 7 brk    0x20000 4096 - - 0    0
13 1 7 1 7 munmap 0x30000 4096 - - 0    0
14 1 7 1 7 mremap 0x40000 8192 4096 0x50000 1 0
15 1 7 1 7 mmap   0x60000 4096 - - 0x22 0
16 1 7 1 7 munmap 0x60001 4096 - - 0    -22
",
        "
== faults
ts pid start address kind
20 7   1     0x10000 minor
21 7   1     0x40000 minor
22 7   1     0x60000 minor
",
    );
    assert_eq!(all(&memory), [(1, 16, None, BlockEnd::Never, 1)]);
}

#[test]
fn advice_that_gives_pages_back_is_a_release_and_what_brings_them_is_mapping() {
    let (memory, _) = followed(
        "
10 1 7 1 7 mmap    0x10000 8192 - - 0x8022  0
11 1 7 1 7 mmap    0x20000 8192 - - 0x20022 0
20 6 7 1 7 madvise 0x10000 4096 - - 4       0
30 8 7 1 7 madvise 0x11000 8192 - - 8       0
40 2 7 1 7 madvise 0x20000 8192 - - 23      0
50 9 7 1 7 madvise 0x10000 8192 - - 14      0
",
        "",
    );
    let block = &memory.blocks[0];
    // Of the second advice one page of two is the block's.
    assert_eq!((block.release_time, block.discards, block.map_time), (Nanos(6 + 4), 2, Nanos(1)));
    assert!(block.populated && !block.is_stack);
    let stack = &memory.blocks[1];
    assert!(stack.populated && stack.is_stack);
    assert_eq!((stack.map_time, stack.closed), (Nanos(1 + 2), None));
}

#[test]
fn rows_in_any_order_and_numbers_beyond_all_measure_are_followed() {
    let calls = ["200 40 7 1 8 munmap 0x10000 8192 - - 0    0", "100 10 7 1 7 mmap   0x10000 8192 - - 0x22 0"];
    let faults = "
== faults
ts  pid start address kind
190 7   1     0x11000 minor
120 7   1     0x10000 minor
250 7   1     0x10000 minor
";
    let (memory, _) = followed(&calls.join("\n"), faults);
    assert_eq!(all(&memory), [(2, 110, Some(200), BlockEnd::Unmapped, 2)]);
    assert_eq!(memory.of_fault, [Some(0), Some(0), None]);

    let most = u64::MAX;
    let (memory, _) = followed(
        &format!(
            "
1      {most} 7 1 7 mmap    {most} {most} - -           0x22 0
2      1      7 1 7 mmap    0      {most} - -           0x22 0
3      {most} 7 1 7 mremap  4096   {most} {most} {most} 1    0
{most} {most} 7 1 7 madvise 0      {most} - -           4    0
{most} {most} 7 1 7 munmap  0      {most} - -           0    0
"
        ),
        &format!("== faults\nts duration pid start address kind\n{most} {most} 7 1 {most} minor\n9 {most} 7 1 5 minor"),
    );
    assert!(memory.blocks.len() <= 2 && memory.of_fault.len() == 2);
}

#[derive(Clone, Debug)]
enum Op {
    Map(u64, u64),
    Unmap(u64, u64),
    Move(u64, u64, u64, u64),
    Fault(u64),
    Exit,
}

fn ops() -> impl Strategy<Value = Vec<(u32, Op)>> {
    let (page, pages) = (0..16u64, 1..6u64);
    let op = prop_oneof![
        3 => (page.clone(), pages.clone()).prop_map(|(page, pages)| Op::Map(page, pages)),
        2 => (page.clone(), pages.clone()).prop_map(|(page, pages)| Op::Unmap(page, pages)),
        1 => (page.clone(), pages.clone(), page.clone(), pages).prop_map(|(from, old, to, new)| Op::Move(from, old, to, new)),
        6 => page.prop_map(Op::Fault),
        1 => Just(Op::Exit),
    ];
    prop::collection::vec((1..3u32, op), 0..80)
}

/// What single pages say: block of each fault, pages of each block that are left.
#[derive(Default)]
struct Model {
    pages: HashMap<(u32, u64), u32>,
    blocks: u32,
    of_fault: Vec<Option<u32>>,
}

impl Model {
    fn apply(&mut self, pid: u32, op: &Op) {
        match *op {
            Op::Map(page, pages) => {
                (page..page + pages).for_each(|page| _ = self.pages.insert((pid, page), self.blocks));
                self.blocks += 1;
            }
            Op::Unmap(page, pages) => (page..page + pages).for_each(|page| _ = self.pages.remove(&(pid, page))),
            Op::Move(from, old, to, new) => {
                let moved: Vec<Option<u32>> = (from..from + old).map(|page| self.pages.remove(&(pid, page))).collect();
                (to..to + new).for_each(|page| _ = self.pages.remove(&(pid, page)));
                // What lay last grows.
                let last = moved.last().copied().flatten();
                for at in 0..new {
                    if let Some(block) = moved.get(at as usize).copied().unwrap_or(last) {
                        self.pages.insert((pid, to + at), block);
                    }
                }
            }
            Op::Fault(page) => self.of_fault.push(self.pages.get(&(pid, page)).copied()),
            Op::Exit => self.pages.retain(|(process, _), _| *process != pid),
        }
    }
}

fn tables_of(ops: &[(u32, Op)]) -> Tables {
    let mut tables = Tables::default();
    for (ts, (pid, op)) in (1u64..).map(|step| Nanos(step * 10)).zip(ops) {
        let call = |call, page: u64, pages: u64, old: Option<(u64, u64)>| MemoryCall {
            // Also none: rows of other programs may have no clock so fine.
            duration: Nanos(ts.0 / 10 % 3 * 2),
            pid: *pid,
            tid: *pid,
            old_length: old.map(|(_, pages)| Bytes(pages * PAGE_SIZE)),
            old_address: old.map(|(page, _)| page * PAGE_SIZE),
            argument: if call == MemoryCallKind::Mmap { 0x22 } else { 1 },
            ..memory_call(call, ts.0, page * PAGE_SIZE, pages * PAGE_SIZE)
        };
        match *op {
            Op::Map(page, pages) => tables.memory_calls.push(call(MemoryCallKind::Mmap, page, pages, None)),
            Op::Unmap(page, pages) => tables.memory_calls.push(call(MemoryCallKind::Munmap, page, pages, None)),
            Op::Move(from, old, to, new) => {
                tables.memory_calls.push(call(MemoryCallKind::Mremap, to, new, Some((from, old))));
            }
            Op::Fault(page) => {
                let row = fault(ts.0, page * PAGE_SIZE + ts.0 % PAGE_SIZE);
                tables.faults.push(Fault { duration: Some(Nanos(3)), pid: *pid, tid: *pid, ..row });
            }
            Op::Exit => {
                let text = format!("== exits\nts pid start tid last\n{} {pid} 1 {pid} true\n", ts.0);
                tables.exits.append(&mut Tables::from_text(&text).unwrap().exits);
            }
        }
    }
    tables
}

proptest! {
    #[test]
    fn each_fault_belongs_to_the_block_that_single_pages_tell_and_to_no_other(ops in ops(), turn in any::<bool>()) {
        let mut model = Model::default();
        ops.iter().for_each(|(pid, op)| model.apply(*pid, op));
        let mut tables = tables_of(&ops);
        if turn {
            tables.memory_calls.reverse();
        }
        let events = MemoryEvents::new(&tables);
        let memory = follow(&events, &fork_faults::follow(&events), &OffCpuTimes::default());
        prop_assert_eq!(memory.blocks.len(), model.blocks as usize);
        prop_assert_eq!(&memory.of_fault, &model.of_fault);
        for (number, block) in (0u32..).zip(&memory.blocks) {
            let theirs = model.of_fault.iter().filter(|fault| **fault == Some(number)).count() as u64;
            prop_assert_eq!((block.faults, block.fault_time), (theirs, Nanos(3 * theirs)));
            let is_mapped = model.pages.values().any(|block| *block == number);
            prop_assert_eq!(block.closed.is_none(), is_mapped, "block {}: {:?}", number, block);
        }
        let in_blocks: u64 = memory.blocks.iter().map(|block| block.faults).sum();
        prop_assert_eq!(in_blocks, memory.of_fault.iter().flatten().count() as u64);
        // No time is counted twice, and none invented.
        let calls: u64 = tables.memory_calls.iter().map(|call| call.duration.0).sum();
        let counted: u64 = memory.blocks.iter().map(|block| block.map_time.0 + block.release_time.0).sum();
        prop_assert!(counted <= calls, "{counted} of {calls}");
    }
}
