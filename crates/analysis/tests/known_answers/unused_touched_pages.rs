//! The finding on recordings with answers known by hand, and on near misses.

use crate::memory_findings::{assert_displaced_threads_are_no_cost, row};
use crate::memory_rows::{fault, memory_call};
use serde_json::Value;
use slowpath_analysis::findings::of_recordings;
use slowpath_analysis::findings::unused_touched_pages::NAME;
use slowpath_analysis::{Confidence, Finding};
use slowpath_recording::{HugePages, Tables};
use slowpath_tables::{
    Bytes, Fault, FaultKind, LookMoment, MemoryCall, MemoryCallKind, Nanos, PAGE_SIZE, PageContent, Quantity, Unit,
};

const TABLE: u64 = 0x7f00_0000_0000;
const PAGES: u64 = 1000;
const MS: u64 = 1_000_000;
const ENDED: u64 = 10_000 * MS;

/// A process that runs for 10 s and uses 1 s of CPU time. Stacks: 3 asks through glibc, 4 touches, 6 asks through jemalloc, 7 maps by
/// itself.
const PROGRAM: &str = r#"
== manifest
{"started": 0, "ended": 10000000000, "probes": [{"name": "fault", "state": "attached"}, {"name": "memory", "state": "attached"}]}
== execs
ts present pid start filename       command_line run_time
0  false   7   1     /usr/bin/parse "parse call" 0
== exits
ts          pid start tid last run_time
10000000000 7   1     7   true 1000000000
== stacks
id parent frame
0  -      0
1  0      1
2  1      2
3  2      3
4  1      4
5  1      5
6  5      3
7  1      3
== frames
id kind dev ino offset
0  file 1   42  0x10
1  file 1   42  0x20
2  file 1   43  0x30
3  file 1   43  0x40
4  file 1   43  0x50
5  file 1   44  0x10
== symbols
frame level function   source_file source_line
0     0     main       parse.cpp   90
1     0     make_table parse.cpp   40
2     0     malloc     -           -
3     0     mmap64     -           -
4     0     memset     -           -
5     0     malloc     -           -
== files
dev ino path
1   42  /usr/bin/parse
1   43  /usr/lib/x86_64-linux-gnu/libc.so.6
1   44  /usr/lib/x86_64-linux-gnu/libjemalloc.so.2
"#;

const ASKS: u32 = 3;
const TOUCHES: u32 = 4;

struct Program(Tables);

impl Program {
    fn new() -> Self {
        Self(Tables::from_text(PROGRAM).unwrap())
    }

    fn call(&mut self, call: MemoryCallKind, ts: u64, argument: u32) -> &mut MemoryCall {
        self.0.memory_calls.push(MemoryCall {
            duration: Nanos(10_000),
            argument,
            stack: Some(ASKS),
            ..memory_call(call, ts, TABLE, PAGES * PAGE_SIZE)
        });
        self.0.memory_calls.last_mut().unwrap()
    }

    /// Each page in 10 us.
    fn touch(&mut self, ts: u64, pages: impl Iterator<Item = u64>) {
        for (number, page) in (0..).zip(pages) {
            let row = fault(ts + number * 20_000, TABLE + page * PAGE_SIZE + 8);
            self.0.faults.push(Fault { duration: Some(Nanos(10_000)), stack: Some(TOUCHES), ..row });
        }
    }

    /// Every `stride`th page is looked at, and there; `is_zero` says which are zero.
    fn look(&mut self, ts: u64, moment: LookMoment, stride: u64, is_zero: impl Fn(u64) -> bool) {
        let looked: Vec<u64> = (0..PAGES).step_by(stride as usize).collect();
        for row in looked.chunks(64) {
            let bits =
                |of: &dyn Fn(u64) -> bool| (0..).zip(row).map(|(bit, page)| u64::from(of(*page)) << bit).sum::<u64>();
            self.0.page_contents.push(PageContent {
                ts: Nanos(ts),
                duration: Nanos(100),
                pid: 7,
                start: Nanos(1),
                tid: 7,
                moment,
                address: TABLE + row[0] * PAGE_SIZE,
                stride: Bytes(stride * PAGE_SIZE),
                pages: row.len() as u32,
                present: bits(&|_| true),
                zero: bits(&is_zero),
            });
        }
    }

    /// A table that is mapped with these flags, touched as a whole, and looked at after the end of its process, is found.
    fn table(flags: u32, is_zero: impl Fn(u64) -> bool) -> Self {
        let mut program = Self::new();
        program.call(MemoryCallKind::Mmap, 0, flags);
        program.touch(MS, 0..PAGES);
        program.look(ENDED + 5, LookMoment::Exit, 4, is_zero);
        program
    }

    fn findings(&self) -> Vec<Finding> {
        of_recordings(&[&self.0], None)
    }

    fn one(&self) -> Finding {
        let findings = self.findings();
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(findings[0].name, NAME);
        findings[0].clone()
    }
}

const ANONYMOUS: u32 = 0x22;

/// The first tenth is used.
fn behind(page: u64) -> bool {
    page >= PAGES / 10
}

fn cell<'a>(finding: &'a Finding, column: &str) -> &'a Value {
    &row(finding, column)[column]
}

#[test]
fn a_table_of_which_a_tenth_is_used_costs_what_the_rest_costs() {
    let finding = Program::table(ANONYMOUS, behind).one();
    assert_eq!(
        finding.title,
        "parse touches 3.91 MiB in make_table and never uses 3.52 MiB of it: 0.9 % of its CPU time"
    );
    assert_eq!(
        (finding.confidence, finding.fixes.as_slice()),
        (Confidence::High, &["right_size_buffer".to_owned()][..])
    );
    assert_eq!(finding.former_name.as_deref(), Some("oversized_first_touch"));
    // 225 of 250 pages, each for four; 1000 faults of 10 us. The interval is Wilson's.
    let Quantity { value, low, high, unit } = finding.cost;
    assert_eq!((value, unit), (9.0, Unit::Ms));
    assert!((low.unwrap() - 8.566).abs() < 0.01 && (high.unwrap() - 9.314).abs() < 0.01, "{low:?} {high:?}");
    assert_eq!(finding.predicted_saving, Some(finding.cost));
    let columns = ["operations", "faults", "unused_pages", "looked_at_pages", "zero_pages", "used_to_bytes"];
    let values = columns.map(|column| cell(&finding, column).as_f64().unwrap());
    assert_eq!(values, [1.0, 1000.0, 900.0, 250.0, 225.0, 100.0 * 4096.0]);
    assert_eq!(finding.subject["function"], "make_table");
    assert_eq!(cell(&finding, "source_line"), 40);
    assert!(cell(&finding, "how").as_str().unwrap().contains("the first 0.39 MiB"), "{finding:#?}");
    assert!(finding.reasons.iter().any(|reason| reason.contains("only ever wrote zeros")), "{:#?}", finding.reasons);
}

#[test]
fn time_in_which_threads_did_not_run_is_in_the_cost_only_where_waits_were_not_recorded() {
    assert_displaced_threads_are_no_cost(|edit| {
        let mut program = Program::table(ANONYMOUS, behind);
        edit(&mut program.0);
        program.one()
    });
}

#[test]
fn a_table_that_is_given_back_or_lives_on_is_looked_at_too() {
    let mut program = Program::new();
    program.call(MemoryCallKind::Mmap, 0, ANONYMOUS);
    program.touch(MS, 0..PAGES);
    program.look(100 * MS, LookMoment::Munmap, 16, behind);
    program.call(MemoryCallKind::Munmap, 100 * MS + 1, 0);
    let finding = program.one();
    assert_eq!(cell(&finding, "looked_at_pages"), 63);
    assert!((finding.cost.value - 10.0 * 56.0 / 63.0).abs() < 1e-9, "{:?}", finding.cost);

    let mut program = Program::table(ANONYMOUS, behind);
    program.0.exits[0].running = true;
    program.0.page_contents.iter_mut().for_each(|look| (look.ts, look.moment) = (Nanos(9000 * MS), LookMoment::End));
    assert_eq!(program.one().cost.value, 9.0);
}

#[test]
fn where_every_page_was_looked_at_only_durations_are_uncertain() {
    let mut program = Program::table(ANONYMOUS, behind);
    program.0.page_contents.clear();
    program.look(ENDED + 5, LookMoment::Exit, 1, behind);
    let finding = program.one();
    assert_eq!((finding.cost.low, finding.cost.value, finding.cost.high), (Some(9.0), 9.0, Some(9.0)));
}

#[test]
fn what_is_used_or_small_or_cheap_or_not_known_is_no_finding() {
    let none = |program: &Program| {
        let findings = program.findings();
        assert!(findings.is_empty(), "{findings:#?}");
    };
    none(&Program::table(ANONYMOUS, |_| false));
    // Less than a tenth, by the lower end of the interval.
    none(&Program::table(ANONYMOUS, |page| page >= PAGES - PAGES / 8));
    // Nobody looked: nothing is known.
    let mut program = Program::table(ANONYMOUS, behind);
    program.0.page_contents.clear();
    none(&program);
    // Pages that are there without a fault: they were touched before, or a call brought them.
    let mut program = Program::table(ANONYMOUS, behind);
    program.0.faults.clear();
    none(&program);
    let mut program = Program::table(ANONYMOUS, behind);
    program.0.faults.iter_mut().for_each(|fault| fault.kind = FaultKind::Major);
    none(&program);
    let mut program = Program::table(ANONYMOUS, behind);
    program.0.faults.iter_mut().for_each(|fault| fault.duration = Some(Nanos(500)));
    none(&program);
    // A file, a thread's stack, a range of a runtime, pages that mmap brought.
    for flags in [2, ANONYMOUS | 0x2_0000, ANONYMOUS | 0x4000, ANONYMOUS | 0x8000] {
        none(&Program::table(flags, behind));
    }
    // Only a tenth of what is given back was looked at.
    let mut program = Program::table(ANONYMOUS, behind);
    program.0.page_contents.iter_mut().for_each(|look| (look.ts, look.moment) = (Nanos(MS * 100), LookMoment::Munmap));
    program.0.page_contents.truncate(1);
    program.call(MemoryCallKind::Munmap, 101 * MS, 0);
    none(&program);
}

#[test]
fn a_page_that_is_faulted_twice_is_counted_once() {
    let mut program = Program::table(ANONYMOUS, behind);
    program.touch(200 * MS, 0..PAGES);
    let finding = program.one();
    assert_eq!((finding.cost.value, cell(&finding, "faults")), (9.0, &1000.into()));
}

#[test]
fn faults_before_pages_were_given_back_are_not_counted() {
    let mut program = Program::table(ANONYMOUS, behind);
    program.call(MemoryCallKind::Madvise, 100 * MS, 4);
    program.touch(200 * MS, 0..PAGES / 10 * 8);
    let finding = program.one();
    assert_eq!(cell(&finding, "faults"), 800);
    // Of the pages that came back; the others are there without a fault, as far as this is known.
    assert_eq!((cell(&finding, "unused_pages"), cell(&finding, "without_fault_pages")), (&700.0.into(), &50.into()));
    assert_eq!(finding.confidence, Confidence::Medium);
}

#[test]
fn what_makes_the_claim_uncertain_lowers_confidence_and_is_reported() {
    let reasons = |program: &Program, confidence: Confidence, reason: &str| {
        let finding = program.one();
        assert_eq!(finding.confidence, confidence, "{reason}: {:#?}", finding.reasons);
        assert!(finding.reasons.iter().any(|one| one.contains(reason)), "{reason}: {:#?}", finding.reasons);
    };
    reasons(&Program::table(ANONYMOUS, |page| page % 8 != 0), Confidence::Medium, "used sparsely");
    reasons(&Program::table(ANONYMOUS, |_| true), Confidence::Medium, "may be data that are read");
    let with = |edit: fn(&mut Tables)| {
        let mut program = Program::table(ANONYMOUS, behind);
        edit(&mut program.0);
        program
    };
    let lost = with(|tables| tables.manifest.losses.add("page_contents", 1));
    reasons(&lost, Confidence::Medium, "1 looks at pages were lost");
    reasons(&with(|tables| tables.memory_calls[0].stack = Some(6)), Confidence::Medium, "for several callers at once");
    reasons(&with(|tables| tables.memory_calls[0].stack = None), Confidence::Low, "no call stacks");
    let direct = with(|tables| tables.memory_calls[0].stack = Some(7)).one();
    assert_eq!(direct.confidence, Confidence::High);
}

#[test]
fn huge_pages_are_looked_at_page_by_page() {
    let mut program = Program::table(ANONYMOUS, behind);
    // Two faults, each for 2 MiB, of 5 ms.
    program.0.faults.truncate(2);
    for (fault, page) in program.0.faults.iter_mut().zip([0, 512]) {
        (fault.address, fault.duration) = (TABLE + page * PAGE_SIZE, Some(Nanos(5 * MS)));
    }
    let finding = program.one();
    assert_eq!((finding.cost.value, finding.confidence), (9.0, Confidence::Medium));
    assert_eq!((cell(&finding, "faults"), cell(&finding, "unused_pages")), (&2.into(), &900.0.into()));
}

#[test]
fn a_block_that_is_mapped_again_and_again_has_its_share_in_that_finding() {
    let mut program = Program::new();
    for round in 0..20 {
        let at = round * 100 * MS;
        program.call(MemoryCallKind::Mmap, at, ANONYMOUS);
        program.touch(at + MS, 0..PAGES);
        program.look(at + 50 * MS, LookMoment::Munmap, 16, behind);
        program.call(MemoryCallKind::Munmap, at + 50 * MS + 1, 0);
    }
    let findings = program.findings();
    assert_eq!(findings.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["transient_large_allocation"]);
    assert_eq!(cell(&findings[0], "never_used_percent"), 88.9);
}

#[test]
fn what_is_never_used_is_no_missed_huge_page_and_what_is_used_is() {
    let names = |is_zero: fn(u64) -> bool| {
        let mut program = Program::table(ANONYMOUS, is_zero);
        let word = || "madvise".to_owned();
        let size = Bytes(16 * PAGE_SIZE);
        program.0.manifest.host.huge_pages = Some(HugePages { enabled: word(), defrag: word(), size });
        program.findings().into_iter().map(|finding| finding.name).collect::<Vec<_>>()
    };
    assert_eq!(names(behind), [NAME]);
    assert_eq!(names(|_| false), ["thp_missed"]);
    // Too few for a finding.
    assert_eq!(names(|page| page >= PAGES - PAGES / 8), ["thp_missed"]);
}

#[test]
fn several_launches_have_it_where_more_than_half_do() {
    let (with, without) = (Program::table(ANONYMOUS, behind), Program::table(ANONYMOUS, |_| false));
    let found = |launches: &[&Tables]| of_recordings(launches, None).len();
    assert_eq!(found(&[&with.0, &with.0, &without.0]), 1);
    assert_eq!(found(&[&with.0, &without.0]), 0);
}
