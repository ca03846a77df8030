//! Blocks that no threshold of malloc keeps, and blocks with huge pages.

use super::{ALLOCATES, MS, Program, row};
use slowpath_analysis::{Confidence, Finding};
use slowpath_tables::{MemoryCallKind, PAGE_SIZE};

const MIB: u64 = 1 << 20;
const HUGE: u64 = 2 * MIB;
const ADDRESS: u64 = 0x7f00_0000_0000;

/// Ten blocks of 64 MiB that begin 8 pages before a multiple of 2 MiB: those pages and one at each place that `touched` tells.
fn blocks(touched: &[(u64, u64)]) -> Program {
    let mut program = Program::new();
    let from = ADDRESS - 8 * PAGE_SIZE;
    for operation in 0..10 {
        let ts = operation * 100 * MS;
        program.call(MemoryCallKind::Mmap, ts, 10_000, from, 64 * MIB, Some(ALLOCATES));
        (0..8).for_each(|page| program.fault(ts + 20_000 + page * 2_000, Some(1_000), from + page * PAGE_SIZE));
        for (number, (place, duration)) in (0u64..).zip(touched) {
            program.fault(ts + MS + number * MS, Some(*duration), ADDRESS + place);
        }
        program.call(MemoryCallKind::Munmap, ts + 90 * MS, 50_000, from, 64 * MIB, None);
    }
    program
}

fn settings(finding: &Finding) -> String {
    finding.fix_inputs.malloc.unwrap().to_string()
}

#[test]
fn faults_of_huge_pages_are_known_by_their_time_and_have_an_interval_of_their_own() {
    // 30 huge pages of 300 us, and one that was interrupted.
    let mut touched: Vec<(u64, u64)> = (0..30).map(|place| (place * HUGE, 300_000)).collect();
    touched[29].1 = 900_000;
    let finding = blocks(&touched).found().unwrap();
    let operations = row(&finding, "operations");
    assert_eq!((&operations["huge_faults"], &operations["faults"]), (&300.into(), &380.into()));
    assert_eq!(operations["touched_bytes"], 10 * (30 * HUGE + 8 * PAGE_SIZE));
    assert_eq!(operations["fault_median_us"], 1.0);
    // 8 us in small faults, 60 us in calls, 29 times 300 us and 900 us; at the low end 30 times 300 us.
    assert!((finding.cost.value - 10.0 * (0.068 + 29.0 * 0.3 + 0.9)).abs() < 1e-9, "{:?}", finding.cost);
    assert!((finding.cost.low.unwrap() - 10.0 * (0.068 + 9.0)).abs() < 1e-9, "{:?}", finding.cost);
    assert!(!finding.reasons.iter().any(|reason| reason.contains("far longer")), "{:?}", finding.reasons);
    assert_eq!(finding.confidence, Confidence::Medium);
    assert!(finding.reasons.iter().any(|reason| reason.contains("huge")), "{:?}", finding.reasons);
    // Who has huge pages need not ask for them.
    assert!(!finding.fixes.iter().any(|fix| fix == "huge_pages"), "{:?}", finding.fixes);
}

#[test]
fn a_small_page_whose_fault_was_interrupted_is_no_huge_one() {
    // 40 pages of one MiB, of which one took 5 ms, and one page elsewhere that took no longer than others.
    let mut touched: Vec<(u64, u64)> = (0..40).map(|page| (page * PAGE_SIZE, 100_000)).collect();
    touched.push((10 * HUGE, 15_000));
    let finding = blocks(&touched).found().unwrap();
    let operations = row(&finding, "operations");
    assert!(!operations.contains_key("huge_faults"), "{operations:?}");
    assert_eq!(operations["touched_bytes"], 10 * 49 * PAGE_SIZE);
    assert!(finding.fixes.iter().any(|fix| fix == "huge_pages"), "{:?}", finding.fixes);
}

#[test]
fn the_largest_blocks_are_kept_by_the_heap_of_brk_and_other_threads_are_told_to_share_it() {
    let touched: Vec<(u64, u64)> = (0..400).map(|page| (page * PAGE_SIZE, 10_000)).collect();
    let kept = "glibc.malloc.trim_threshold=536870912:glibc.malloc.mmap_max=0";
    assert_eq!(settings(&blocks(&touched).found().unwrap()), kept);
    let elsewhere = blocks(&touched).edited(|tables| tables.memory_calls.iter_mut().for_each(|call| call.tid = 8));
    assert_eq!(settings(&elsewhere.found().unwrap()), format!("{kept}:glibc.malloc.arena_max=1"));
}
