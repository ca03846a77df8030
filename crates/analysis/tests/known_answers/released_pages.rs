//! Pages that were given back, on recordings written as text, and on random calls against a model of single pages.

use proptest::prelude::*;
use slowpath_analysis::memory::fork_faults;
use slowpath_analysis::memory::memory_events::MemoryEvents;
use slowpath_analysis::memory::released_pages::{Release, ReleaseKind, ReleasedPages, follow};
use slowpath_analysis::time::off_cpu_times::{self, OffCpuTimes};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, PAGE_SIZE};
use std::collections::HashMap;

const CALLS: &str = "ts duration pid start tid call address length shrinks argument result";
const FAULTS: &str = "ts duration pid start tid address kind";

fn followed(calls: &str, faults: &str) -> ReleasedPages {
    followed_on("", calls, faults)
}

/// On a machine that the manifest describes.
fn followed_on(manifest: &str, calls: &str, faults: &str) -> ReleasedPages {
    let text = format!("{manifest}== memory_calls\n{CALLS}\n{calls}\n== faults\n{FAULTS}\n{faults}");
    let tables = Tables::from_text(&text).unwrap();
    let events = MemoryEvents::new(&tables);
    follow(&events, &[], &fork_faults::follow(&events), &off_cpu_times::follow(&tables))
}

/// Kind, pages that were taken, that came back, and when the first did.
fn in_short(release: &Release) -> (ReleaseKind, u64, u64, Option<u64>) {
    (release.kind, release.taken.0, release.faults, release.touched.map(|(first, _)| first.0))
}

fn all(released: &ReleasedPages) -> Vec<(ReleaseKind, u64, u64, Option<u64>)> {
    released.releases.iter().map(in_short).collect()
}

#[test]
fn a_heap_that_shrinks_grows_and_is_touched_again_has_its_faults_and_calls() {
    let released = followed(
        "
10 2 7 1 7 brk 0x14000 16384 false 0 0
50 8 7 1 7 brk 0x11000 12288 true  0 0
60 6 7 1 7 brk 0x15000 16384 false 0 0
",
        "
20 1 7 1 7 0x10000 minor
21 1 7 1 7 0x11000 minor
22 1 7 1 7 0x12000 minor
70 3 7 1 8 0x11008 minor
71 - 7 1 8 0x11010 minor
72 5 7 1 8 0x14000 minor
",
    );
    // Of three pages two had been touched; one came back. A second fault in it is another matter, and so is a first touch.
    assert_eq!(all(&released), [(ReleaseKind::BrkTrim, 2, 1, Some(70))]);
    assert_eq!(released.of_fault, [None, None, None, Some(0), None, None]);
    let release = &released.releases[0];
    assert_eq!((release.fault_time, release.release_time(), release.grows), (Nanos(3), Nanos(4), 1));
    // Two of the four pages that the heap grew by had been given back.
    assert_eq!((release.grow_time, release.away(), release.time()), (Nanos(3), Some(Nanos(12)), Nanos(10)));
}

#[test]
fn a_fault_touches_all_of_a_large_page() {
    let host = r#"{"kernel": "", "machine": "", "page_size": 65536, "cpus": 1, "memory_bytes": 0}"#;
    let released = followed_on(
        &format!("== manifest\n{{\"host\": {host}}}\n"),
        "
30 1 7 1 7 madvise 0x10000 131072 false 4  0
",
        "
20 1 7 1 7 0x10000 minor
21 1 7 1 7 0x2f008 minor
40 1 7 1 7 0x14000 minor
41 1 7 1 7 0x18000 minor
",
    );
    // Two pages of 64 KiB were there, which tables count as 32; one came back.
    assert_eq!(all(&released), [(ReleaseKind::DontNeed, 32, 1, Some(40))]);
    assert_eq!(released.of_fault, [None, None, Some(0), None]);
}

#[test]
fn advice_takes_what_was_touched_and_nothing_twice() {
    let released = followed(
        "
30 1 7 1 7 madvise 0x10000 16384 false 4  0
31 1 7 1 7 madvise 0x10000 16384 false 4  0
50 1 7 1 7 madvise 0x10000 16384 false 4  -22
51 1 7 1 7 madvise 0x10000 16384 false 14 0
60 1 7 1 7 madvise 0x10000 4096  false 4  0
",
        "
20 1 7 1 7 0x10000 minor
21 1 7 1 7 0x11000 minor
40 1 7 1 7 0x11000 minor
41 1 7 1 7 0x12000 minor
55 1 7 1 7 0x10000 minor
70 1 7 1 7 0x10000 minor
",
    );
    let dontneed = ReleaseKind::DontNeed;
    assert_eq!(all(&released), [(dontneed, 2, 2, Some(40)), (dontneed, 1, 1, Some(70))]);
    assert_eq!(released.of_fault, [None, None, Some(0), None, Some(0), Some(1)]);
}

#[test]
fn what_the_kernel_may_take_costs_where_it_took_it_and_counts_for_the_last_release() {
    let released = followed(
        "
30 1 7 1 7 madvise 0x10000 8192 false 8 0
40 1 7 1 7 madvise 0x10000 8192 false 8 0
60 1 7 1 7 madvise 0x10000 4096 false 4 0
",
        "
20 1 7 1 7 0x10000 minor
21 1 7 1 7 0x11000 minor
50 1 7 1 7 0x11000 minor
70 1 7 1 7 0x10000 minor
",
    );
    let (free, dontneed) = (ReleaseKind::Free, ReleaseKind::DontNeed);
    assert_eq!(all(&released), [(free, 2, 0, None), (free, 2, 1, Some(50)), (dontneed, 1, 1, Some(70))]);
}

#[test]
fn what_is_mapped_anew_moved_or_another_processs_is_no_page_that_came_back() {
    let released = followed(
        "
30 1 7 1 7 madvise 0x10000 4096 false 4 0
31 1 7 1 7 madvise 0x20000 4096 false 4 0
32 1 7 1 7 madvise 0x30000 4096 false 4 0
33 1 8 1 8 madvise 0x40000 4096 false 4 0
40 1 7 1 7 munmap  0x10000 4096 false 0 0
41 1 7 1 7 mmap    0x10000 4096 false 0x22 0
42 1 7 1 7 mmap    0x20000 4096 false 0x22 0
",
        "
20 1 7 1 7 0x10000 minor
21 1 7 1 7 0x20000 minor
22 1 7 1 7 0x40000 minor
50 1 7 1 7 0x10000 minor
51 1 7 1 7 0x20000 minor
52 1 7 1 7 0x40000 minor
53 1 9 1 9 0x10000 minor
",
    );
    let dontneed = ReleaseKind::DontNeed;
    assert_eq!(all(&released), [(dontneed, 1, 0, None), (dontneed, 1, 0, None)]);
    assert!(released.of_fault.iter().all(Option::is_none));
}

#[test]
fn pages_that_a_call_brings_are_there_without_a_fault() {
    let released = followed(
        "
10 1 7 1 7 mmap    0x10000 8192 false 0x8022 0
30 1 7 1 7 madvise 0x10000 8192 false 4      0
40 1 7 1 7 madvise 0x10000 4096 false 23     0
60 1 7 1 7 madvise 0x10000 4096 false 4      0
",
        "
50 1 7 1 7 0x10000 minor
51 1 7 1 7 0x11000 minor
70 1 7 1 7 0x10000 minor
",
    );
    let dontneed = ReleaseKind::DontNeed;
    assert_eq!(all(&released), [(dontneed, 2, 1, Some(51)), (dontneed, 1, 1, Some(70))]);
}

#[test]
fn numbers_beyond_all_measure_are_followed() {
    let most = u64::MAX;
    let released = followed(
        &format!(
            "
1      {most} 7 1 7 brk     {most} {most} true  0 0
2      {most} 7 1 7 brk     {most} {most} false 0 0
3      {most} 7 1 7 madvise {most} {most} false 4 0
{most} {most} 7 1 7 madvise 0      {most} false 4 0
"
        ),
        &format!("{most} {most} 7 1 7 {most} minor\n0 {most} 7 1 7 {most} minor\n"),
    );
    assert!(released.releases.len() <= 3);
}

#[derive(Clone, Debug)]
enum Op {
    Map(u64, u64),
    Unmap(u64, u64),
    Discard(u64, u64, u32),
    /// The heap of brk, which lies apart: its new end.
    End(u64),
    Fault(u64),
    FaultInHeap(u64),
    Exit,
}

fn ops() -> impl Strategy<Value = Vec<(u32, Op)>> {
    let (page, pages) = (0..12u64, 1..6u64);
    let op = prop_oneof![
        1 => (page.clone(), pages.clone()).prop_map(|(page, pages)| Op::Map(page, pages)),
        1 => (page.clone(), pages.clone()).prop_map(|(page, pages)| Op::Unmap(page, pages)),
        3 => (page.clone(), pages.clone(), prop_oneof![Just(4u32), Just(8)])
            .prop_map(|(page, pages, advice)| Op::Discard(page, pages, advice)),
        3 => page.clone().prop_map(Op::End),
        8 => page.clone().prop_map(Op::Fault),
        8 => page.prop_map(Op::FaultInHeap),
        1 => Just(Op::Exit),
    ];
    prop::collection::vec((1..3u32, op), 0..100)
}

/// Where heaps begin, in pages.
const HEAP: u64 = 1000;

/// What single pages say: there, or taken by a release and whether that may have left them.
#[derive(Clone, Copy)]
enum Page {
    Present,
    Taken(usize, bool),
}

#[derive(Default)]
struct Model {
    pages: HashMap<(u32, u64), Page>,
    ends: HashMap<u32, u64>,
    faults: Vec<u64>,
    of_fault: Vec<Option<usize>>,
}

impl Model {
    fn end(&self, pid: u32) -> u64 {
        self.ends.get(&pid).copied().unwrap_or(HEAP)
    }

    fn release(&mut self, pid: u32, pages: impl Iterator<Item = u64>, may_leave: bool) {
        let number = self.faults.len();
        let mut is_any = false;
        for page in pages {
            let there = self.pages.get_mut(&(pid, page));
            if let Some(page) = there.filter(|page| !matches!(page, Page::Taken(_, false))) {
                (*page, is_any) = (Page::Taken(number, may_leave), true);
            }
        }
        self.faults.extend(is_any.then_some(0));
    }

    fn fault(&mut self, pid: u32, page: u64) {
        let taken = match self.pages.insert((pid, page), Page::Present) {
            Some(Page::Taken(number, _)) => Some(number),
            _ => None,
        };
        self.of_fault.push(taken);
        if let Some(number) = taken {
            self.faults[number] += 1;
        }
    }

    /// Applies an operation and gives its row: a call, a fault or an exit.
    fn apply(&mut self, ts: u64, pid: u32, op: &Op) -> (&'static str, String) {
        let call = |call: &str, page: u64, pages: u64, shrinks: bool, argument: u32| {
            let (address, length) = (page * PAGE_SIZE, pages * PAGE_SIZE);
            ("call", format!("{ts} 5 {pid} 1 {pid} {call} {address} {length} {shrinks} {argument} 0\n"))
        };
        let fault =
            |page: u64| ("fault", format!("{ts} 3 {pid} 1 {pid} {} minor\n", page * PAGE_SIZE + ts % PAGE_SIZE));
        match *op {
            Op::Map(page, pages) | Op::Unmap(page, pages) => {
                (page..page + pages).for_each(|page| _ = self.pages.remove(&(pid, page)));
                let is_map = matches!(op, Op::Map(..));
                let (name, flags) = if is_map { ("mmap", 0x22) } else { ("munmap", 0) };
                call(name, page, pages, false, flags)
            }
            Op::Discard(page, pages, advice) => {
                self.release(pid, page..page + pages, advice == 8);
                call("madvise", page, pages, false, advice)
            }
            Op::End(page) => {
                let (before, after) = (self.end(pid), HEAP + page);
                self.ends.insert(pid, after);
                if after < before {
                    self.release(pid, after..before, false);
                }
                call("brk", after, before.abs_diff(after), after < before, 0)
            }
            Op::Fault(page) => {
                self.fault(pid, page);
                fault(page)
            }
            Op::FaultInHeap(page) => {
                // Beyond its end there is no memory.
                if HEAP + page >= self.end(pid) {
                    return ("", String::new());
                }
                self.fault(pid, HEAP + page);
                fault(HEAP + page)
            }
            Op::Exit => {
                self.pages.retain(|(process, _), _| *process != pid);
                self.ends.remove(&pid);
                ("exit", format!("{ts} {pid} 1 {pid} true\n"))
            }
        }
    }
}

proptest! {
    #[test]
    fn each_fault_belongs_to_the_release_that_single_pages_tell(ops in ops()) {
        let mut model = Model::default();
        let mut text: HashMap<&str, String> = HashMap::new();
        for (number, (pid, op)) in (1u64..).zip(&ops) {
            let (table, row) = model.apply(number * 10, *pid, op);
            text.entry(table).or_default().push_str(&row);
        }
        let rows = |table: &str| text.get(table).cloned().unwrap_or_default();
        let text = format!(
            "== memory_calls\n{CALLS}\n{}== faults\n{FAULTS}\n{}== exits\nts pid start tid last\n{}",
            rows("call"), rows("fault"), rows("exit")
        );
        let tables = Tables::from_text(&text).unwrap();
        let events = MemoryEvents::new(&tables);
        let released = follow(&events, &[], &fork_faults::follow(&events), &OffCpuTimes::default());
        let faults: Vec<u64> = released.releases.iter().map(|release| release.faults).collect();
        prop_assert_eq!(&faults, &model.faults);
        let of_fault: Vec<Option<usize>> = released.of_fault.iter().map(|one| one.map(|one| one as usize)).collect();
        if !released.releases.is_empty() {
            prop_assert_eq!(&of_fault, &model.of_fault);
        }
        for release in &released.releases {
            prop_assert!(release.faults <= release.taken.0 && release.release_time().0 <= 5);
        }
        let grown: u64 = released.releases.iter().map(|release| release.grow_time.0).sum();
        prop_assert!(grown <= 5 * tables.memory_calls.len() as u64);
    }
}
