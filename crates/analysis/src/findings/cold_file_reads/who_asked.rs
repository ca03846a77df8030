//! On whose behalf pages were read, in which sizes, and who already advises or prefetches.

use crate::finding::{Evidence, row};
use crate::interval::median;
use crate::io::demand::Demand;
use crate::io::files::FileId;
use crate::io::insertions::{Cause, Insertion};
use crate::launch_facts::LaunchFacts;
use serde_json::Value;
use slowpath_tables::{PAGE_SIZE, ProcessKey, SectionKind};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What kind of access a request served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AccessKind {
    /// A mapping, by the ELF section that was touched; `None` for a mapped file that is not ELF.
    Mapped(Option<SectionKind>),
    /// A read call.
    ReadCall,
    /// Anything else: advice, exec, lookups.
    Other,
}

impl AccessKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Mapped(Some(kind)) => kind.as_str(),
            Self::Mapped(None) => "mapped",
            Self::ReadCall => "read_call",
            Self::Other => "other_cause",
        }
    }
}

/// Kind of the access behind a request. One that begins with readahead lies around its demanded page (the kernel reads
/// half a window before it and half after), so the page in the middle shows the section.
pub(super) fn kind_of_request(facts: &LaunchFacts<'_>, request: &Insertion) -> AccessKind {
    let kind_of_page = |page: u64| AccessKind::Mapped(facts.files.get(request.file).kind_of_page(page));
    match request.cause {
        Cause::Fault => kind_of_page(request.page),
        Cause::Readahead => kind_of_page(request.page.saturating_add(request.pages / 2)),
        Cause::Read => AccessKind::ReadCall,
        Cause::Advice | Cause::Exec | Cause::Metadata | Cause::Other => AccessKind::Other,
    }
}

/// Median of lengths in pages, as KiB.
pub(super) fn median_kib(pages: &[u64]) -> Value {
    let pages: Vec<f64> = pages.iter().map(|pages| *pages as f64).collect();
    median(&pages).map_or(Value::Null, |pages| Value::from(pages * PAGE_SIZE as f64 / 1024.0))
}

/// One row a cause.
pub(super) fn causes(facts: &LaunchFacts<'_>) -> Evidence {
    let mut pages = [0u64; Cause::ALL.len()];
    for insertion in facts.insertions_until_ready() {
        pages[insertion.cause as usize] += insertion.pages;
    }
    let total: u64 = pages.iter().sum();
    let mut order: Vec<(Cause, u64)> = Cause::ALL.into_iter().zip(pages).filter(|(_, pages)| *pages > 0).collect();
    order.sort_by_key(|(cause, pages)| (std::cmp::Reverse(*pages), *cause));
    let rows = order.into_iter().map(|(cause, pages)| {
        row([
            ("cause", Value::from(cause.as_str())),
            ("pages_read", Value::from(pages)),
            ("share_percent", Value::from((pages as f64 / total as f64 * 1e4).round() / 1e2)),
        ])
    });
    Evidence { text: "Why pages were read before ready.".to_owned(), rows: rows.collect() }
}

/// One row a kind of access, with the size of its requests.
pub(super) fn request_sizes(facts: &LaunchFacts<'_>, requests: &[Insertion]) -> Evidence {
    let mut sizes: BTreeMap<AccessKind, Vec<u64>> = BTreeMap::new();
    for request in requests {
        sizes.entry(kind_of_request(facts, request)).or_default().push(request.pages);
    }
    let mut order: Vec<(AccessKind, Vec<u64>)> = sizes.into_iter().collect();
    order.sort_by_key(|(kind, sizes)| (std::cmp::Reverse(sizes.len()), *kind));
    let rows = order.into_iter().map(|(kind, sizes)| {
        row([
            ("access", Value::from(kind.as_str())),
            ("requests", Value::from(sizes.len())),
            ("median_kib", median_kib(&sizes)),
            ("pages_read", Value::from(sizes.iter().sum::<u64>())),
        ])
    });
    Evidence { text: "Sizes of the kernel's reads by what was accessed.".to_owned(), rows: rows.collect() }
}

/// Advice that the program (or something beside it in its tree) already gives; `None` when there is none.
pub(super) fn advice(facts: &LaunchFacts<'_>) -> Option<Evidence> {
    let mut pages: BTreeMap<(ProcessKey, FileId), u64> = BTreeMap::new();
    for insertion in facts.insertions_until_ready().iter().filter(|insertion| insertion.cause == Cause::Advice) {
        *pages.entry((insertion.process, insertion.file)).or_default() += insertion.pages;
    }
    if pages.is_empty() {
        return None;
    }
    let mut order: Vec<((ProcessKey, FileId), u64)> = pages.into_iter().collect();
    order.sort_by_key(|(key, pages)| (std::cmp::Reverse(*pages), *key));
    let rows = order.into_iter().take(20).map(|((process, file), pages)| {
        row([
            ("process", Value::from(facts.processes.name(process))),
            ("pid", Value::from(process.pid)),
            ("in_tree", Value::from(facts.in_tree(process))),
            ("path", Value::from(facts.files.get(file).path.as_str())),
            ("pages_read", Value::from(pages)),
        ])
    });
    Some(Evidence {
        text: "Pages that an advice (madvise, fadvise, readahead, MAP_POPULATE) brought: somebody prefetches already."
            .to_owned(),
        rows: rows.collect(),
    })
}

/// What tasks outside the tree read of the launch's files before the launch asked for it; `None` when there was none.
/// Recorded is only what they did on the recorded device.
pub(super) fn prefetcher(facts: &LaunchFacts<'_>, needed: Option<&Demand>) -> Option<Evidence> {
    let mut outside: BTreeMap<ProcessKey, (u64, HashSet<(FileId, u64)>)> = BTreeMap::new();
    for insertion in facts.insertions_until_ready().iter().filter(|insertion| !facts.in_tree(insertion.process)) {
        let (pages, brought) = outside.entry(insertion.process).or_default();
        *pages += insertion.pages;
        brought.extend((insertion.page..insertion.page + insertion.pages).map(|page| (insertion.file, page)));
    }
    if outside.is_empty() {
        return None;
    }
    let demanded: Option<HashSet<(FileId, u64)>> = needed.map(|needed| {
        let ids: HashMap<&str, FileId> = facts.files.iter().map(|(id, info)| (info.path.as_str(), id)).collect();
        let pages = needed.pages_until_ready().iter();
        pages.filter_map(|p| Some((*ids.get(needed.files[p.file as usize].path.as_str())?, p.page))).collect()
    });
    let rows = outside.into_iter().map(|(process, (pages, brought))| {
        let gained = demanded.as_ref().map(|demanded| brought.intersection(demanded).count());
        let total = needed.map_or(0, |needed| needed.pages_until_ready().len()).max(1);
        row([
            ("process", Value::from(facts.processes.name(process))),
            ("pid", Value::from(process.pid)),
            ("pages_read", Value::from(pages)),
            ("pages_needed", gained.map_or(Value::Null, Value::from)),
            (
                "share_of_need_percent",
                gained.map_or(Value::Null, |g| Value::from((g as f64 / total as f64 * 1e4).round() / 1e2)),
            ),
        ])
    });
    Some(Evidence {
        text: "Pages that other tasks read before the launch needed them: a system prefetcher, or a neighbour."
            .to_owned(),
        rows: rows.collect(),
    })
}
