//! What was read of each file and section, what of it was needed, and how long it was waited for.

use crate::finding::{Evidence, Row, milliseconds, row};
use crate::findings::cold_file_reads::who_asked::{AccessKind, kind_of_request, median_kib};
use crate::integer_hash::IntegerMap;
use crate::io::demand::{Demand, Jumps};
use crate::io::files::FileId;
use crate::io::insertions::{Cause, Insertion};
use crate::io::page_ranges::{PageRanges, SortedPages};
use crate::launch_facts::LaunchFacts;
use serde_json::Value;
use slowpath_tables::Nanos;
use std::collections::{BTreeMap, HashMap};

/// Rows beyond these are summed up in one.
const SHOWN: usize = 30;

/// Reading of one file.
#[derive(Default)]
struct Reading {
    pages: PageRanges,
    by_cause: [u64; Cause::ALL.len()],
    request_pages: BTreeMap<AccessKind, Vec<u64>>,
    /// First page of the request before.
    last_request: Option<u64>,
    /// Requests that begin before the one before them.
    requests_backward: u64,
}

/// What was demanded of each file up to ready.
struct Needed<'a> {
    in_order: HashMap<&'a str, Vec<u64>>,
}

impl<'a> Needed<'a> {
    fn new(demand: &'a Demand) -> Self {
        Self { in_order: demand.by_path() }
    }

    fn of(&self, path: &str) -> &[u64] {
        self.in_order.get(path).map_or(&[], Vec::as_slice)
    }
}

fn optional(value: Option<u64>) -> Value {
    value.map_or(Value::Null, Value::from)
}

/// One row a file, longest waiting first, the rest summed up.
pub(super) fn rows(facts: &LaunchFacts<'_>, requests: &[Insertion], needed: Option<&Demand>) -> Evidence {
    let mut files: Vec<Reading> = (0..facts.files.len()).map(|_| Reading::default()).collect();
    for insertion in facts.insertions_until_ready() {
        let reading = &mut files[insertion.file.index()];
        let sum = &mut reading.by_cause[insertion.cause as usize];
        *sum = sum.saturating_add(insertion.pages);
        reading.pages.add(insertion.range());
    }
    for request in requests {
        let kind = kind_of_request(facts, request);
        let reading = &mut files[request.file.index()];
        reading.request_pages.entry(kind).or_default().push(request.pages);
        let before = reading.last_request.replace(request.page);
        reading.requests_backward += u64::from(before.is_some_and(|before| request.page < before));
    }
    let blocked = facts.blocked.per_file(facts.released, facts.until());
    let needed = needed.map(Needed::new);
    let waited = |file: &FileId| blocked.get(&Some(*file)).copied().unwrap_or_default();
    let mut order: Vec<(FileId, Reading)> = (0..).map(FileId).zip(files).collect();
    order.retain(|(file, reading)| reading.pages.count() > 0 || waited(file) > Nanos(0));
    order.sort_by_key(|(file, reading)| (std::cmp::Reverse((waited(file), reading.pages.count())), *file));
    let mut rows: Vec<Row> = Vec::new();
    let (mut rest, mut rest_pages, mut rest_blocked) = (0u64, 0u64, Nanos(0));
    for (file, reading) in order {
        if rows.len() == SHOWN {
            rest += 1;
            rest_pages = rest_pages.saturating_add(reading.pages.count());
            rest_blocked += waited(&file);
            continue;
        }
        rows.push(file_row(facts, file, &reading, needed.as_ref(), waited(&file)));
    }
    if rest > 0 {
        rows.push(row([
            ("path", Value::from(format!("({rest} more files)"))),
            ("pages_read", Value::from(rest_pages)),
            ("blocked_ms", milliseconds(rest_blocked)),
        ]));
    }
    if let Some(unknown) = blocked.get(&None) {
        rows.push(row([("path", Value::from("(file not known)")), ("blocked_ms", milliseconds(*unknown))]));
    }
    Evidence {
        text:
            "What was read of each file before ready, what of it a launch without readahead demanded, the direction of \
               its steps and of what was read, and how long threads waited."
                .to_owned(),
        rows,
    }
}

fn file_row(
    facts: &LaunchFacts<'_>,
    file: FileId,
    reading: &Reading,
    needed: Option<&Needed<'_>>,
    blocked: Nanos,
) -> Row {
    let info = facts.files.get(file);
    let demanded = needed.map(|needed| needed.of(&info.path));
    let jumps = demanded.map(|pages| Jumps::count(pages.iter().copied()));
    let wasted = demanded.map(|needed| reading.pages.sorted().unneeded(needed));
    let mut cells = row([
        ("path", Value::from(info.path.as_str())),
        ("size_bytes", optional(info.size)),
        ("pages_needed", optional(demanded.map(|pages| pages.len() as u64))),
        ("pages_read", Value::from(reading.pages.count())),
        ("pages_wasted", optional(wasted)),
        ("steps_forward", optional(jumps.map(|jumps| jumps.forward))),
        ("steps_backward", optional(jumps.map(|jumps| jumps.backward))),
        ("steps_adjacent", optional(jumps.map(|jumps| jumps.adjacent))),
        ("requests_backward", Value::from(reading.requests_backward)),
        ("blocked_ms", milliseconds(blocked)),
    ]);
    let by_cause = Cause::ALL.iter().zip(&reading.by_cause).filter(|(_, pages)| **pages > 0);
    for (cause, pages) in by_cause {
        cells.insert(format!("pages_by_{}", cause.as_str()), Value::from(*pages));
    }
    for (kind, pages) in &reading.request_pages {
        cells.insert(format!("median_kib_{}", kind.as_str()), median_kib(pages));
    }
    cells
}

/// One row an ELF section that was read or needed, longest waiting first.
pub(super) fn sections(facts: &LaunchFacts<'_>, needed: Option<&Demand>) -> Evidence {
    #[derive(Default)]
    struct Sums {
        read: u64,
        different: u64,
        needed: Vec<u64>,
        blocked: Nanos,
    }
    // Sections of one file are distinguished by their offset.
    let mut sums: IntegerMap<(FileId, u64), Sums> = IntegerMap::default();
    let section = |file: FileId, page: u64| facts.files.get(file).section_of_page(page).map(|s| (file, s.offset.0));
    let mut read: IntegerMap<FileId, PageRanges> = IntegerMap::default();
    for insertion in facts.insertions_until_ready() {
        if !facts.files.get(insertion.file).sections.is_empty() {
            read.entry(insertion.file).or_default().add(insertion.range());
        }
    }
    let read: IntegerMap<FileId, SortedPages> = read.into_iter().map(|(file, pages)| (file, pages.sorted())).collect();
    for (file, read) in &read {
        for (section, pages) in facts.files.get(*file).sections_of_pages() {
            let (count, different) = (read.count(&pages), read.different(&pages));
            if count > 0 {
                let sums = sums.entry((*file, section.offset.0)).or_default();
                sums.read = sums.read.saturating_add(count);
                sums.different += different;
            }
        }
    }
    for interval in facts.blocked.within(facts.released, facts.until()) {
        if let Some(key) = interval.file.and_then(|file| section(file, interval.page)) {
            sums.entry(key).or_default().blocked += interval.to - interval.from;
        }
    }
    if let Some(needed) = needed.map(Needed::new) {
        for (file, info) in facts.files.iter().filter(|(_, info)| !info.sections.is_empty()) {
            for &page in needed.of(&info.path) {
                if let Some(key) = section(file, page) {
                    sums.entry(key).or_default().needed.push(page);
                }
            }
        }
    }
    let mut order: Vec<((FileId, u64), Sums)> = sums.into_iter().collect();
    order.sort_by_key(|(key, sums)| (std::cmp::Reverse((sums.blocked, sums.read)), *key));
    let rows = order.into_iter().take(SHOWN).filter_map(|((file, offset), sums)| {
        let info = facts.files.get(file);
        let section = info.sections.iter().find(|section| section.offset.0 == offset && section.size.0 > 0)?;
        let held = read.get(&file).map_or(0, |read| read.held(&sums.needed));
        Some(row([
            ("path", Value::from(info.path.as_str())),
            ("section", Value::from(section.name.as_str())),
            ("kind", Value::from(section.kind.as_str())),
            ("size_bytes", Value::from(section.size.0)),
            ("pages_read", Value::from(sums.read)),
            ("pages_needed", optional(needed.map(|_| sums.needed.len() as u64))),
            ("pages_wasted", optional(needed.map(|_| sums.different - held))),
            ("blocked_ms", milliseconds(sums.blocked)),
        ]))
    });
    Evidence { text: format!("The same by ELF section, the {SHOWN} with the longest waiting."), rows: rows.collect() }
}
