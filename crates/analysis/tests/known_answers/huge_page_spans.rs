//! Spans that would fit a huge page, on recordings written as text, and on random calls against a model of single pages.

use proptest::prelude::*;
use slowpath_analysis::memory::huge_page_advice::HugePageAdvice;
use slowpath_analysis::memory::huge_page_spans::{Mapping, Spans, follow, size};
use slowpath_analysis::memory::memory_events::MemoryEvents;
use slowpath_recording::{HugePages, Tables};
use slowpath_tables::{Bytes, PAGE_SIZE};
use std::collections::HashMap;

const CALLS: &str = "ts duration pid start tid call address length shrinks argument result";
const FAULTS: &str = "ts duration pid start tid address kind";
/// Pages of a span here: as few as are believed.
const PAGES: u64 = 16;
const SIZE: Bytes = Bytes(PAGES * PAGE_SIZE);
/// Of so many pages nearly all are 15.
const LEAST: u64 = 15;

fn touches(ts: u64, pid: u32, address: u64, pages: u64) -> String {
    (0..pages).map(|page| format!("{} 1 {pid} {pid} {pid} {} minor\n", ts + page, address + page * PAGE_SIZE)).collect()
}

fn followed(calls: &str, faults: &str, rest: &str) -> Spans {
    let text = format!("== memory_calls\n{CALLS}\n{calls}\n== faults\n{FAULTS}\n{faults}\n{rest}");
    follow(&MemoryEvents::new(&Tables::from_text(&text).unwrap()), SIZE, |_| false)
}

/// First address, pages touched, whole at first and later, dense.
fn in_short(spans: &Spans) -> Vec<(u64, u64, bool, bool, bool)> {
    let span = |one: &slowpath_analysis::memory::huge_page_spans::Span| {
        (one.address, one.touched.0, one.was_whole, one.is_whole, spans.is_dense(one))
    };
    spans.spans.iter().map(span).collect()
}

#[test]
fn a_mapping_holds_the_aligned_spans_within_it_and_pages_count_once() {
    // 50 pages from the eighth on: its edges hold no span.
    let calls = "1 1 7 7 7 mmap 0x8000 204800 false 0x22 0";
    let faults = touches(10, 7, 0x8000, 50) + &touches(100, 7, 0x10000, 3) + "200 1 7 7 7 0x10000 major";
    let spans = followed(calls, &faults, "");
    let expected = [(0, 8, false, false, false), (0x10000, 16, true, true, true), (0x20000, 16, true, true, true)];
    assert_eq!(in_short(&spans)[..3], expected);
    assert_eq!(in_short(&spans)[3], (0x30000, 10, false, false, false));
    assert_eq!(spans.of_fault.iter().flatten().count(), 50);
    assert!(spans.spans.iter().all(|span| span.mapping == Mapping::Block(0) && span.request == HugePageAdvice::None));
    assert_eq!(spans.pages().0, PAGES);
}

#[test]
fn a_heap_that_grows_in_small_steps_holds_a_span_later_than_it_is_touched() {
    let grow = |ts: u64, end: u64| format!("{ts} 1 7 7 7 brk {end} {} false 0 0\n", 8 * PAGE_SIZE);
    let calls = grow(1, 0x18000) + &grow(50, 0x20000) + &grow(90, 0x28000);
    let faults = touches(10, 7, 0x10000, 8) + &touches(60, 7, 0x18000, 7);
    let spans = followed(&calls, &faults, "");
    assert_eq!(in_short(&spans), [(0x10000, LEAST, false, true, true)]);
    // With a page less it is not dense.
    let spans = followed(&calls, &(touches(10, 7, 0x10000, 8) + &touches(60, 7, 0x18000, 6)), "");
    assert_eq!(in_short(&spans), [(0x10000, LEAST - 1, false, false, false)]);
    // The next program of the process has a heap of its own.
    let rest = "== execs\nts present pid start filename command_line\n70 false 7 7 /bin/next next\n";
    let calls = grow(1, 0x18000) + &grow(80, 0x18000);
    let spans = followed(&calls, &(touches(10, 7, 0x10000, 8) + &touches(90, 7, 0x10000, 8)), rest);
    assert_eq!(spans.spans.iter().map(|span| span.touched.0).collect::<Vec<_>>(), [8, 8]);
}

#[test]
fn shared_memory_stacks_and_what_nobody_was_seen_to_map_are_no_spans() {
    for flags in ["0x21", "0x20022", "0x2"] {
        let calls = format!("1 1 7 7 7 mmap 0x10000 65536 false {flags} 0");
        assert!(followed(&calls, &touches(10, 7, 0x10000, 16), "").spans.is_empty(), "{flags}");
    }
    let calls = "1 1 7 7 7 mmap 0x10000 65536 false 0x22 0";
    assert!(followed(calls, &touches(10, 8, 0x10000, 16), "").spans.is_empty());
    assert!(followed(calls, &touches(10, 7, 0x30000, 16), "").spans.is_empty());
}

#[test]
fn faults_that_belong_to_something_else_are_not_counted_and_noted_at_their_span() {
    let text = format!(
        "== memory_calls\n{CALLS}\n1 1 7 7 7 mmap 0x10000 131072 false 0x22 0\n== faults\n{FAULTS}\n{}",
        touches(10, 7, 0x10000, 32)
    );
    let spans = follow(&MemoryEvents::new(&Tables::from_text(&text).unwrap()), SIZE, |fault| fault == 20);
    let touched: Vec<(u64, bool)> = spans.spans.iter().map(|span| (span.touched.0, span.has_others)).collect();
    assert_eq!((touched, spans.of_fault[20]), (vec![(16, false), (15, true)], None));
}

#[test]
fn who_asked_and_who_refused_is_known_by_address_and_by_process() {
    let request = |calls: &str, pid: u32, rest: &str| {
        let map = format!("1 1 {pid} {pid} {pid} mmap 0x10000 65536 false 0x22 0\n");
        followed(&(map + calls), &touches(100, pid, 0x10000, 1), rest).spans[0].request
    };
    assert_eq!(request("", 7, ""), HugePageAdvice::None);
    assert_eq!(request("5 1 7 7 7 madvise 0x10000 65536 false 14 0", 7, ""), HugePageAdvice::Asked);
    assert_eq!(request("5 1 7 7 7 madvise 0x10000 65536 false 14 -22", 7, ""), HugePageAdvice::None);
    assert_eq!(request("5 1 7 7 7 madvise 0x10000 65536 false 15 0", 7, ""), HugePageAdvice::Refused);
    // Too late, elsewhere, on what lay there before.
    assert_eq!(request("200 1 7 7 7 madvise 0x10000 65536 false 14 0", 7, ""), HugePageAdvice::None);
    assert_eq!(request("5 1 7 7 7 madvise 0x20000 65536 false 14 0", 7, ""), HugePageAdvice::None);
    let before = "0 0 7 7 7 mmap 0x10000 65536 false 0x22 0\n0 0 7 7 7 madvise 0x10000 65536 false 14 0";
    assert_eq!(request(before, 7, ""), HugePageAdvice::None);
    // It moves with the memory.
    let moved = "5 1 7 7 7 madvise 0x10000 65536 false 14 0\n== memory_calls\n\
                 ts duration pid start tid call address length old_address old_length argument result\n\
                 20 1 7 7 7 mremap 0x40000 65536 0x10000 65536 1 0";
    let map = "1 1 7 7 7 mmap 0x10000 65536 false 0x22 0\n";
    let spans = followed(&format!("{map}{moved}"), &touches(100, 7, 0x40000, 1), "");
    assert_eq!((spans.spans[0].request, spans.spans[0].mapping), (HugePageAdvice::Asked, Mapping::Block(0)));
    // A process, its child from then on, and what is asked for nevertheless.
    let set = |ts: u64, argument: u32| format!("{ts} 1 7 7 7 prctl 0 0 false {argument} 0\n");
    assert_eq!(request(&set(5, 1), 7, ""), HugePageAdvice::Refused);
    assert_eq!(request(&(set(5, 1) + &set(8, 0)), 7, ""), HugePageAdvice::None);
    let forked = |ts: u64| format!("== forks\nts parent_pid parent_start pid start tid thread\n{ts} 7 7 8 8 8 false\n");
    assert_eq!(request(&set(5, 1), 8, &forked(9)), HugePageAdvice::Refused);
    assert_eq!(request(&set(5, 1), 8, &forked(4)), HugePageAdvice::None);
    let asked = "9 1 7 7 7 madvise 0x10000 65536 false 14 0\n";
    assert_eq!(request(&(set(5, 3) + asked), 7, ""), HugePageAdvice::Asked);
    assert_eq!(request(&(set(5, 1) + asked), 7, ""), HugePageAdvice::Refused);
    assert_eq!(request(&set(5, 3), 7, ""), HugePageAdvice::Refused);
}

#[test]
fn the_size_is_the_recordings_and_nonsense_is_none() {
    let of = |bytes: u64| {
        let mut tables = Tables::default();
        let huge_pages = HugePages { enabled: "madvise".to_owned(), defrag: "madvise".to_owned(), size: Bytes(bytes) };
        tables.manifest.host.huge_pages = Some(huge_pages);
        size(&tables.manifest)
    };
    assert_eq!((of(2 << 20), of(1 << 20)), (Some(Bytes(2 << 20)), Some(Bytes(1 << 20))));
    assert_eq!([0, 4096, 3 << 20, 1 << 40, u64::MAX].map(of), [None; 5]);
    assert_eq!(size(&Tables::default().manifest), None);
}

/// First page of the heap; blocks lie below.
const HEAP: u64 = 160;

#[derive(Clone, Debug)]
enum Op {
    Map(u64, u64),
    Unmap(u64, u64),
    End(u64),
    Touch(u64, u64),
    Exit,
}

fn ops() -> impl Strategy<Value = Vec<(u32, Op)>> {
    let place = || (0..HEAP, 1..60u64);
    let op = prop_oneof![
        3 => place().prop_map(|(page, pages)| Op::Map(page, pages)),
        1 => place().prop_map(|(page, pages)| Op::Unmap(page, pages)),
        3 => (0..80u64).prop_map(Op::End),
        6 => (0..HEAP + 80, 1..40u64).prop_map(|(page, pages)| Op::Touch(page, pages)),
        1 => Just(Op::Exit),
    ];
    prop::collection::vec((7..9u32, op), 0..60)
}

/// Single pages: which mapping each is of, and which were touched.
#[derive(Default)]
struct Model {
    mapped: HashMap<(u32, u64), u64>,
    ends: HashMap<u32, (u64, u64)>,
    touched: HashMap<(u64, u64), u64>,
    seen: HashMap<(u64, u64), (bool, bool)>,
    pages: std::collections::HashSet<(u64, u64)>,
    of_fault: Vec<Option<(u64, u64)>>,
    next: u64,
}

impl Model {
    fn is_whole(&self, pid: u32, mapping: u64, span: u64) -> bool {
        (span * PAGES..(span + 1) * PAGES).all(|page| self.mapped.get(&(pid, page)) == Some(&mapping))
    }

    fn touch(&mut self, pid: u32, page: u64) {
        let first = self.mapped.get(&(pid, page)).copied().map(|mapping| (mapping, page / PAGES, mapping));
        let counted = first.map(|(mapping, span, _)| {
            let is_whole = self.is_whole(pid, mapping, span);
            let seen = self.seen.entry((mapping, span)).or_insert((is_whole, is_whole));
            if !self.pages.insert((mapping, page)) {
                return None;
            }
            let touched = self.touched.entry((mapping, span)).or_default();
            *touched += 1;
            seen.1 |= *touched >= LEAST && is_whole;
            Some((mapping, span))
        });
        self.of_fault.push(counted.flatten());
    }

    fn apply(&mut self, ts: u64, pid: u32, op: &Op, calls: &mut String, faults: &mut String, exits: &mut String) {
        let call = |name: &str, page: u64, pages: u64, shrinks: bool, argument: u32| {
            let (address, length) = (page * PAGE_SIZE, pages * PAGE_SIZE);
            format!("{ts} 1 {pid} {pid} {pid} {name} {address} {length} {shrinks} {argument} 0\n")
        };
        self.next += 1;
        match *op {
            Op::Map(page, pages) | Op::Unmap(page, pages) => {
                let pages = pages.min(HEAP - page);
                let is_map = matches!(op, Op::Map(..));
                for page in page..page + pages {
                    self.mapped.remove(&(pid, page));
                    is_map.then(|| self.mapped.insert((pid, page), self.next));
                }
                *calls += &if is_map {
                    call("mmap", page, pages, false, 0x22)
                } else {
                    call("munmap", page, pages, false, 0)
                };
            }
            Op::End(page) => {
                let (mapping, before) = *self.ends.entry(pid).or_insert((self.next, HEAP));
                let after = HEAP + page;
                self.ends.insert(pid, (mapping, after));
                (before.min(after)..before.max(after)).for_each(|page| _ = self.mapped.remove(&(pid, page)));
                (before..after).for_each(|page| _ = self.mapped.insert((pid, page), mapping));
                *calls += &call("brk", after, before.abs_diff(after), after < before, 0);
            }
            Op::Touch(from, pages) => {
                for page in from..from + pages {
                    self.touch(pid, page);
                    *faults += &format!("{} 1 {pid} {pid} {pid} {} minor\n", ts + 2, page * PAGE_SIZE + ts % PAGE_SIZE);
                }
            }
            Op::Exit => {
                self.mapped.retain(|(process, _), _| *process != pid);
                self.ends.remove(&pid);
                *exits += &format!("{} {pid} {pid} {pid} true\n", ts + 2);
            }
        }
    }
}

proptest! {
    #[test]
    fn each_first_touch_belongs_to_the_span_that_single_pages_tell(ops in ops()) {
        let mut model = Model::default();
        let (mut calls, mut faults, mut exits) = (String::new(), String::new(), String::new());
        for (number, (pid, op)) in (1u64..).zip(&ops) {
            model.apply(number * 10, *pid, op, &mut calls, &mut faults, &mut exits);
        }
        let spans = followed(&calls, &faults, &format!("== exits\nts pid start tid last\n{exits}"));
        let mut names: HashMap<u32, (u64, u64)> = HashMap::new();
        if !calls.is_empty() {
            prop_assert_eq!(spans.of_fault.len(), model.of_fault.len());
        }
        for (found, expected) in spans.of_fault.iter().zip(&model.of_fault) {
            prop_assert_eq!(found.is_some(), expected.is_some());
            if let (Some(found), Some(expected)) = (found, expected) {
                prop_assert_eq!(*names.entry(*found).or_insert(*expected), *expected);
            }
        }
        for (number, span) in (0u32..).zip(&spans.spans) {
            let Some(name) = names.get(&number) else { continue };
            prop_assert_eq!(span.touched.0, model.touched[name]);
            prop_assert_eq!((span.was_whole, span.is_whole), model.seen[name]);
        }
    }
}
