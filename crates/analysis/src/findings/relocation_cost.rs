//! Finding `relocation_cost`: before main the run-time linker writes addresses into the pages of a program and its libraries.
//!
//! **What is bad.** Each page that holds an address that is not known at link time is copied when the linker writes it, so no other
//! process shares it, and the tables that say what to write are read beside it. For a symbol every library is searched in turn.
//!
//! **Cost.** Time of the first threads of all started programs until main from the linker's faults for pages that it writes or reads to
//! relocate ([`crate::starts::loader_work`] says how) until its next event, in ms of the launch. The low end of the interval is
//! the time in these faults alone. Major faults wait for storage, which is `cold_file_reads`, and are left out.
//!
//! **Predicted saving.** None: which of it a setting ends is shown for each object, and how long the rest takes is not known before
//! the build.
//!
//! **No finding** below half a millisecond or 2 % of the time to ready (of the length of the recording where there is none), which
//! `loader_findings` explains;
//! a start below [`NO_NOISE`] and with fewer than [`LEAST_PAGES`] pages is left out, for recording and interrupts add most of it;
//! for static programs; where the recording's owner may not see addresses.
//!
//! **Confidence.** High; medium where waits were not recorded (a thread that was displaced counts up to 1 ms then), and where
//! rows were lost, also of waits; low where more than [`LOSS_LOW`](super::doubts::LOSS_LOW) of them were.

pub(crate) mod settings;

use super::doubts::Doubts;
use super::loader_findings::{self, ObjectNames, cost_of, doubts, is_material, milliseconds_of, payers, shown_launch};
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::{Evidence, Finding, Row, milliseconds, row};
use crate::fix_inputs::FixInputs;
use crate::io::files::FileId;
use crate::launch_facts::LaunchFacts;
use crate::needs::Need;
use crate::starts::loader_work::{Relocated, Start};
use crate::threshold::{Condition, Threshold};
use serde_json::Value;
use settings::settings;
use slowpath_tables::Nanos;
use std::collections::BTreeMap;

/// Name of the finding.
pub const NAME: &str = "relocation_cost";

/// Interrupts, a busy machine and what recording adds besides walks of stacks are less than this in one start of a small program.
const NO_NOISE: Nanos = Nanos(1_000_000);

/// Pages of one start that are written, or faulted in of tables. The C library, the linker and a small program have fewer; of twelve
/// programs whose relocations take 1 ms and more each has a hundred and more.
const LEAST_PAGES: usize = 64;

/// Rows of evidence.
const MOST_ROWS: usize = 10;

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "relocations before main",
    what: "Before main the run-time linker writes addresses into pages of the program and its libraries, and reads relocation and symbol \
           tables to know them.",
    why: "Each page that it writes is copied, so every process has its own; each entry of the tables is 24 bytes that are read, and each \
          symbol is searched in one library after the other. That is repeated at every start, and nothing else runs meanwhile.",
    helps: "Per object, as its tables allow: -Wl,-z,pack-relative-relocs (needs glibc 2.36) makes the tables a tenth or less; -no-pie \
            leaves a program's own addresses alone (`slowpath layout repack --prelink` tries that without a build), and -static all of them; -fvisibility=hidden or -Wl,-Bsymbolic-functions end lookups \
            of an object's own symbols; -Wl,-z,lazy puts off those of calls. Trade-off: no randomised addresses (-no-pie), the GOT stays \
            writable (lazy), symbols that nobody can replace (visibility). Prelink did all of it ahead of time; glibc dropped it in 2.36.",
    by_hand: "ldd -d PROGRAM relocates and ldd PROGRAM does not: the difference of their times is the cost; readelf -rW OBJECT lists \
              relocations; perf trace -F min --no-syscalls -- COMMAND shows the faults of ld.so",
    threshold: Threshold {
        condition: Some(Condition::Starts { time: NO_NOISE, pages: LEAST_PAGES }),
        ..loader_findings::THRESHOLD
    },
    needs: &[Need::Faults, Need::Mappings],
    shows_in: ShowsIn::WarmLaunches,
    find: |input| find(input.observation.launches).into_iter().collect(),
};

/// The starts of one launch that relocate more than recording adds.
struct RelocatingStarts<'a> {
    facts: &'a LaunchFacts<'a>,
    starts: Vec<&'a Start>,
}

impl RelocatingStarts<'_> {
    fn cost(&self) -> Nanos {
        self.starts.iter().map(|start| start.relocation()).sum()
    }

    /// The time in page faults alone.
    fn in_faults(&self) -> Nanos {
        self.starts.iter().flat_map(|start| start.relocated.values()).map(|one| one.fault_time).sum()
    }
}

/// Looks for the finding in launches of one command.
fn find(launches: &[LaunchFacts<'_>]) -> Option<Finding> {
    let is_more = |start: &&Start| start.relocation() >= NO_NOISE || start.pages() >= LEAST_PAGES;
    let found = launches
        .iter()
        .map(|facts| RelocatingStarts { facts, starts: facts.loader_work().iter().filter(is_more).collect() });
    let mut found: Vec<RelocatingStarts<'_>> = found.collect();
    found.sort_by_key(RelocatingStarts::cost);
    let costs: Vec<Nanos> = found.iter().map(RelocatingStarts::cost).collect();
    let shown = shown_launch(&found)?;
    is_material(shown.cost(), shown.facts).then(|| finding(&costs, shown))?
}

/// An object in all starts of a launch.
#[derive(Default)]
struct Object {
    starts: u64,
    written: u64,
    read: u64,
    searched: u64,
    time: Nanos,
}

impl Object {
    fn add(&mut self, one: &Relocated) {
        self.starts += 1;
        self.written += one.written.len() as u64;
        self.read += one.read.len() as u64;
        self.searched += one.searched.len() as u64;
        self.time += one.time;
    }
}

fn objects(found: &RelocatingStarts<'_>) -> Vec<(FileId, Object)> {
    let mut objects: BTreeMap<FileId, Object> = BTreeMap::new();
    for (file, one) in found.starts.iter().flat_map(|start| &start.relocated) {
        objects.entry(*file).or_default().add(one);
    }
    let mut objects: Vec<_> = objects.into_iter().collect();
    objects.sort_by_key(|(file, object)| (std::cmp::Reverse(object.time), *file));
    objects
}

fn finding(costs: &[Nanos], shown: &RelocatingStarts<'_>) -> Option<Finding> {
    let facts = shown.facts;
    let names = ObjectNames::new(facts);
    let objects = objects(shown);
    let (first, _) = objects.first()?;
    let most = shown.starts.iter().max_by_key(|start| (start.relocation(), std::cmp::Reverse(start.process)))?;
    let name = facts.processes.name(most.process);
    let (who, s) = payers(shown.starts.iter().map(|start| (start.process, start.relocation())), facts);
    let tables = &facts.tables;
    let Doubts { confidence, reasons } = doubts(
        facts,
        &[("faults", tables.faults.len()), ("mappings", tables.mappings.len()), ("off_cpu", tables.off_cpu.len())],
    );
    let beside = if objects.len() > 1 { format!(" and {} more", objects.len() - 1) } else { String::new() };
    Some(Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: format!(
            "{who} spend{s} {} of {} on relocations before main: {}{beside}",
            milliseconds_of(shown.cost()),
            milliseconds_of(facts.duration()),
            names.short(*first),
        ),
        subject: row([
            ("process", Value::from(name.as_str())),
            ("pid", Value::from(most.process.pid)),
            ("file", Value::from(names.path(*first))),
        ]),
        cost: cost_of(costs, shown.in_faults()),
        predicted_saving: None,
        confidence,
        reasons,
        evidence: evidence(shown, &names, &objects),
        fixes: Vec::new(),
        fix_inputs: FixInputs::default(),
        see_by_hand: FINDING.by_hand.to_owned(),
    })
}

fn evidence(shown: &RelocatingStarts<'_>, names: &ObjectNames<'_>, objects: &[(FileId, Object)]) -> Vec<Evidence> {
    let rows = objects.iter().take(MOST_ROWS).map(|(file, object)| object_row(names, *file, object));
    let by_object = Evidence {
        text: "Objects that were relocated before main: time, pages that the run-time linker wrote, pages of its own tables and of \
               symbol tables that it faulted in, and what its tables hold."
            .to_owned(),
        rows: rows.collect(),
    };
    let mut set: Vec<Row> = Vec::new();
    for (file, _) in objects.iter().take(MOST_ROWS) {
        let Some(relocations) = names.relocations(*file) else { continue };
        set.extend(settings(relocations).into_iter().map(|one| {
            row([
                ("object", Value::from(names.path(*file))),
                ("setting", Value::from(one.setting)),
                ("ends", Value::from(one.ends)),
                ("entries", Value::from(one.entries)),
                ("price", Value::from(one.price)),
            ])
        }));
    }
    let by_setting = Evidence {
        text: "Settings of the build that end it, by object, from the relocations that each has.".to_owned(),
        rows: set,
    };
    let programs = Evidence { text: "The same by started program.".to_owned(), rows: program_rows(shown) };
    let mut evidence = vec![by_object, by_setting, programs];
    evidence.retain(|one| !one.rows.is_empty());
    evidence
}

fn object_row(names: &ObjectNames<'_>, file: FileId, object: &Object) -> Row {
    let mut cells = row([
        ("object", Value::from(names.path(file))),
        ("relocation_ms", milliseconds(object.time)),
        ("starts", Value::from(object.starts)),
        ("pages_written", Value::from(object.written)),
        ("table_pages", Value::from(object.read)),
        ("symbol_pages", Value::from(object.searched)),
    ]);
    if let Some(relocations) = names.relocations(file) {
        let tables = [
            ("relative", relocations.relative),
            ("packed", relocations.packed),
            ("symbolic", relocations.symbolic),
            ("calls", relocations.calls),
            ("table_kib", relocations.table_bytes.0 >> 10),
        ];
        cells.extend(tables.map(|(name, value)| (name.to_owned(), Value::from(value))));
        cells.insert("bind_now".to_owned(), Value::from(relocations.bind_now));
    }
    cells
}

fn program_rows(shown: &RelocatingStarts<'_>) -> Vec<Row> {
    let mut by_name: BTreeMap<String, (u64, Nanos, u64)> = BTreeMap::new();
    for start in &shown.starts {
        let (starts, time, pages) = by_name.entry(shown.facts.processes.name(start.process)).or_default();
        *starts += 1;
        *time += start.relocation();
        *pages += start.relocated.values().map(|one| one.written.len() as u64).sum::<u64>();
    }
    let mut programs: Vec<_> = by_name.into_iter().collect();
    programs.sort_by_key(|(_, (_, time, _))| std::cmp::Reverse(*time));
    let rows = programs.iter().take(MOST_ROWS).map(|(name, (starts, time, pages))| {
        row([
            ("process", Value::from(name.as_str())),
            ("starts", Value::from(*starts)),
            ("relocation_ms", milliseconds(*time)),
            ("private_kib", Value::from((pages * shown.facts.tables.manifest.host.page()) >> 10)),
        ])
    });
    rows.collect()
}
