//! Finding `many_libraries`: before main the run-time linker looks for many libraries, opens and maps them.
//!
//! **What is bad.** Each library is looked for along a path, opened, its head read, and mapped in four or five pieces; its first pages
//! are faulted in; and every symbol of later libraries may be searched in it.
//!
//! **Cost.** Time of the first threads of all started programs from the first attempt to open a library until the last one is mapped
//! ([`crate::starts::loader_work`] says what counts), in ms of the launch. Searching symbols and relocating come later and are
//! [`super::relocation_cost`]; its time of each library stands beside it and is no part of this cost. Major faults are left out.
//!
//! **Predicted saving.** None: how long the rest takes is not known before the build.
//!
//! **No finding** for a program that loads fewer than [`LEAST_LIBRARIES`]; below the thresholds of [`super::relocation_cost`]; for
//! libraries that are loaded after main began (dlopen); where opens were not recorded.
//!
//! **Confidence.** High; medium where waits were not recorded and where rows were lost; low where more than
//! [`LOSS_LOW`](super::doubts::LOSS_LOW) of them were.

use super::doubts::Doubts;
use super::loader_findings::{self, ObjectNames, cost_of, doubts, is_material, milliseconds_of, payers, shown_launch};
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::{Evidence, Finding, Row, milliseconds, row};
use crate::fix_inputs::FixInputs;
use crate::io::files::FileId;
use crate::launch_facts::LaunchFacts;
use crate::needs::Need;
use crate::starts::loader_work::Start;
use crate::threshold::{Condition, Threshold};
use serde_json::Value;
use slowpath_tables::Nanos;
use std::collections::BTreeMap;

/// Name of the finding.
pub const NAME: &str = "many_libraries";

/// Fewer libraries than this are not many: what a small graphical or network tool needs.
const LEAST_LIBRARIES: usize = 12;

/// Rows of evidence.
const MOST_ROWS: usize = 20;

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "many libraries before main",
    what: "A program depends on many libraries, directly or indirectly, and the run-time linker searches for, opens and maps each of \
        them before main.",
    why: "A library takes about ten system calls and as many page faults before any of its code runs, and one more place in which each \
          symbol is searched. Libraries that come with others are often used by none of what the start does.",
    helps: "Link without those that are not used (-Wl,--as-needed), open those that only some work needs when it begins (dlopen), link small \
            ones statically or many into one. Where lookups outnumber libraries: fewer directories in RUNPATH and LD_LIBRARY_PATH, or a \
            place that ldconfig knows. Trade-off: another link; a static library is updated by a rebuild.",
    by_hand: "ldd PROGRAM loads and does no more: its time against that of a program without libraries; LD_DEBUG=libs shows lookups; strace -f -e trace=openat,mmap -- \
              COMMAND shows the calls; ldd -u COMMAND lists libraries that are named and not used",
    threshold: Threshold { condition: Some(Condition::Libraries(LEAST_LIBRARIES)), ..loader_findings::THRESHOLD },
    needs: &[Need::Opens, Need::Faults, Need::Mappings],
    shows_in: ShowsIn::WarmLaunches,
    find: |input| find(input.observation.launches).into_iter().collect(),
};

/// The starts of one launch with many libraries.
struct LibraryStarts<'a> {
    facts: &'a LaunchFacts<'a>,
    starts: Vec<&'a Start>,
}

impl LibraryStarts<'_> {
    fn cost(&self) -> Nanos {
        self.starts.iter().map(|start| start.loading()).sum()
    }
}

/// Looks for the finding in launches of one command.
fn find(launches: &[LaunchFacts<'_>]) -> Option<Finding> {
    let found = launches.iter().map(|facts| {
        let many = facts.loader_work().iter().filter(|start| start.loaded.len() >= LEAST_LIBRARIES);
        LibraryStarts { facts, starts: many.collect() }
    });
    let mut found: Vec<LibraryStarts<'_>> = found.collect();
    found.sort_by_key(LibraryStarts::cost);
    let costs: Vec<Nanos> = found.iter().map(LibraryStarts::cost).collect();
    let shown = shown_launch(&found)?;
    is_material(shown.cost(), shown.facts).then(|| finding(&costs, shown))?
}

fn finding(costs: &[Nanos], shown: &LibraryStarts<'_>) -> Option<Finding> {
    let facts = shown.facts;
    let most = shown.starts.iter().max_by_key(|start| (start.loading(), std::cmp::Reverse(start.process)))?;
    let name = facts.processes.name(most.process);
    let tables = &facts.tables;
    let Doubts { confidence, reasons } = doubts(
        facts,
        &[
            ("opens", tables.opens.len()),
            ("faults", tables.faults.len()),
            ("mappings", tables.mappings.len()),
            ("off_cpu", tables.off_cpu.len()),
        ],
    );
    let (who, s) = payers(shown.starts.iter().map(|start| (start.process, start.loading())), facts);
    let loaded = || shown.starts.iter().flat_map(|start| &start.loaded);
    let (libraries, lookups) = (loaded().count(), loaded().map(|one| one.lookups).sum::<u64>());
    Some(Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: format!(
            "{who} load{s} {libraries} libraries before main in {lookups} lookups: {} of {}",
            milliseconds_of(shown.cost()),
            milliseconds_of(facts.duration()),
        ),
        subject: row([
            ("process", Value::from(name.as_str())),
            ("pid", Value::from(most.process.pid)),
            ("libraries", Value::from(most.loaded.len())),
        ]),
        cost: cost_of(costs, shown.cost()),
        predicted_saving: None,
        confidence,
        reasons,
        evidence: evidence(shown),
        fixes: Vec::new(),
        fix_inputs: FixInputs::default(),
        see_by_hand: FINDING.by_hand.to_owned(),
    })
}

/// A library in all starts of a launch.
#[derive(Default)]
struct Library {
    starts: u64,
    lookups: u64,
    mapped: u64,
    faults: u64,
    time: Nanos,
    relocation: Nanos,
}

fn evidence(shown: &LibraryStarts<'_>) -> Vec<Evidence> {
    let names = ObjectNames::new(shown.facts);
    let mut libraries: BTreeMap<FileId, Library> = BTreeMap::new();
    for start in &shown.starts {
        for one in &start.loaded {
            let library = libraries.entry(one.file).or_default();
            library.starts += 1;
            library.lookups += one.lookups;
            library.mapped = library.mapped.max(one.mapped);
            library.faults += one.faults;
            library.time += one.time;
            library.relocation += start.relocated.get(&one.file).map(|one| one.time).unwrap_or_default();
        }
    }
    let mut libraries: Vec<_> = libraries.into_iter().collect();
    libraries.sort_by_key(|(file, library)| (std::cmp::Reverse(library.time), *file));
    let rows = libraries.iter().take(MOST_ROWS).map(|(file, library)| library_row(&names, *file, library));
    let by_library = Evidence {
        text: format!(
            "The most costly of {} libraries: time to load, attempts to open it, KiB of address space, page faults of the linker meanwhile, \
             and its relocation, which is no part of this cost.",
            libraries.len()
        ),
        rows: rows.collect(),
    };
    let by_program = Evidence { text: "The same by started program.".to_owned(), rows: program_rows(shown) };
    vec![by_library, by_program]
}

fn library_row(names: &ObjectNames<'_>, file: FileId, library: &Library) -> Row {
    let mut cells = row([
        ("library", Value::from(names.path(file))),
        ("load_ms", milliseconds(library.time)),
        ("lookups", Value::from(library.lookups)),
        ("mapped_kib", Value::from(library.mapped >> 10)),
        ("faults", Value::from(library.faults)),
        ("relocation_ms", milliseconds(library.relocation)),
        ("starts", Value::from(library.starts)),
    ]);
    if let Some(relocations) = names.relocations(file) {
        let symbols = relocations.symbolic.saturating_add(if relocations.bind_now { relocations.calls } else { 0 });
        cells.insert("symbol_lookups".to_owned(), Value::from(symbols));
    }
    cells
}

fn program_rows(shown: &LibraryStarts<'_>) -> Vec<Row> {
    let mut by_name: BTreeMap<String, (u64, u64, u64, Nanos)> = BTreeMap::new();
    for start in &shown.starts {
        let (starts, libraries, lookups, time) = by_name.entry(shown.facts.processes.name(start.process)).or_default();
        *starts += 1;
        *libraries += start.loaded.len() as u64;
        *lookups += start.loaded.iter().map(|one| one.lookups).sum::<u64>();
        *time += start.loading();
    }
    let mut programs: Vec<_> = by_name.into_iter().collect();
    programs.sort_by_key(|(_, (_, _, _, time))| std::cmp::Reverse(*time));
    let rows = programs.iter().take(MOST_ROWS).map(|(name, (starts, libraries, lookups, time))| {
        row([
            ("process", Value::from(name.as_str())),
            ("starts", Value::from(*starts)),
            ("libraries", Value::from(*libraries)),
            ("lookups", Value::from(*lookups)),
            ("load_ms", milliseconds(*time)),
        ])
    });
    rows.collect()
}
