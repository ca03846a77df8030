//! What proves the finding, as rows, and what would end it.

use super::found::MissedHugePages;
use super::groups::{Cause, Mode};
use crate::finding::{Evidence, milliseconds, row};
use crate::findings::allocating_stack::Allocator;
use crate::findings::heap_trim_churn::groups::MemoryManager;
use crate::findings::memory_evidence::{Remedy, add_off_cpu, parts, rounded};
use crate::memory::memory_fixes::{ADVISE_HUGE_PAGES, ALLOCATOR_TUNABLES, HUGE_PAGES};
use serde_json::Value;
use slowpath_tables::Quantity;

/// Stacks that map, at most.
const MOST_STACKS: usize = 10;

/// What spans and all of them cost, part by part.
pub(super) fn cost(found: &MissedHugePages<'_>) -> Evidence {
    let cost = &found.cost;
    let mut rows = vec![("page faults, with the zeroing of pages", cost.faults.time())];
    rows.extend(cost.unseen.map(|unseen| {
        let all = unseen.value * cost.faults.count as f64;
        ("what their durations lack, less what recording adds", all)
    }));
    parts("What touching page by page costs in the kernel; an operation is a huge page's worth.", &rows, found.spans())
}

/// How many spans, how large, how densely touched.
pub(super) fn spans(found: &MissedHugePages<'_>) -> Evidence {
    let (group, faults) = (found.group, &found.cost.faults);
    let size = found.memory.spans.size;
    let spans = group.spans.len() as u64;
    let mut shown = row([
        ("spans", Value::from(spans)),
        ("span_bytes", Value::from(size.0)),
        ("size_bytes", Value::from(spans.saturating_mul(size.0))),
        ("mappings", Value::from(group.mappings)),
        ("faults", Value::from(faults.count)),
        ("faults_per_span", rounded(faults.count as f64 / found.spans().max(1.0), 1)),
        ("fault_median_us", rounded(faults.median / 1e3, 3)),
        ("faults_by_kernel", Value::from(faults.by_kernel)),
        ("untimed_faults", Value::from(faults.untimed)),
        ("untouched_bytes", Value::from(group.untouched.bytes().0)),
        ("untouched_elsewhere_bytes", Value::from(group.untouched_elsewhere.bytes().0)),
        ("mode", Value::from(found.mode.as_str())),
    ]);
    add_off_cpu(&mut shown, "faults_off_cpu_ms", faults.off_cpu);
    let text = "A span is an aligned range that a huge page would hold, of which nine tenths and more were touched page by page. \
                untouched is what would become resident in them besides, untouched_elsewhere the same in sparsely touched spans of \
                this place, where those have huge pages too.";
    Evidence { text: text.to_owned(), rows: vec![shown] }
}

/// Why there were no huge pages.
pub(super) fn causes(found: &MissedHugePages<'_>) -> Evidence {
    let mut causes: Vec<(&Cause, &u64)> = found.group.causes.iter().collect();
    causes.sort_by_key(|(cause, spans)| (std::cmp::Reverse(**spans), **cause));
    let rows = causes
        .into_iter()
        .map(|(cause, spans)| row([("cause", Value::from(cause.as_str())), ("in_spans", Value::from(*spans))]));
    Evidence { text: "Why the kernel gave no huge pages.".to_owned(), rows: rows.collect() }
}

/// Where the memory was mapped at several places, those with most of the cost.
pub(super) fn places(found: &MissedHugePages<'_>) -> Evidence {
    let stacks = found.stacks();
    let rows = stacks.iter().filter(|_| stacks.len() > 1).take(MOST_STACKS).map(|(number, time)| {
        let stack = found.memory.stacks.get(*number);
        let name = stack.who_asked().map_or(Value::Null, |caller| Value::from(caller.function.as_str()));
        row([("function", name), ("stack", Value::from(stack.folded())), ("total_ms", milliseconds(*time))])
    });
    Evidence { text: "The places that mapped the memory, by what touching it cost.".to_owned(), rows: rows.collect() }
}

/// What is saved, from what; nothing where it is not predicted.
pub(super) fn saving(found: &MissedHugePages<'_>) -> Evidence {
    let text =
        "What huge pages are predicted to save: the faults, less the huge pages, which are zeroed too.".to_owned();
    let Ok(prediction) = &found.prediction else { return Evidence { text, rows: Vec::new() } };
    let line = |name: &str, source: &str, value: &Quantity| {
        row([
            ("part", Value::from(name)),
            ("source", Value::from(source)),
            ("ms", rounded(value.value, 3)),
            ("low_ms", rounded(value.low.unwrap_or(value.value), 3)),
            ("high_ms", rounded(value.high.unwrap_or(value.value), 3)),
        ])
    };
    let mut instead = line("huge pages instead", "calibrated", &prediction.instead);
    instead.insert("ns_per_4_kib".to_owned(), rounded(prediction.per_page.value, 1));
    let source = if found.cost.unseen.is_some() { "recorded and calibrated" } else { "recorded" };
    let rows = vec![
        line("page faults", source, &found.cost.total),
        instead,
        line("predicted", "the first less the second", &prediction.saving),
    ];
    Evidence { text, rows }
}

/// What would end it.
pub(super) fn remedies(found: &MissedHugePages<'_>) -> Vec<Remedy> {
    let group = found.group;
    let mut remedies = Vec::new();
    if !group.is_unasked() && found.mode != Mode::Never {
        return remedies;
    }
    let resident = (group.untouched + group.untouched_elsewhere).bytes().as_mb();
    let price = format!("{resident:.1} MB or more that nobody touched become resident with it");
    let is_unknown = found.stack.callers.is_empty();
    let glibc = |where_glibc: &str| {
        let how = format!(
            "{where_glibc}GLIBC_TUNABLES=glibc.malloc.hugetlb=1 (glibc 2.35 and later) has malloc ask for huge pages, and its heap grow in \
             steps of their size; {price}"
        );
        Remedy { is_predicted: true, ..Remedy::new(HUGE_PAGES, how) }
    };
    match group.place {
        MemoryManager::Allocator(Some(Allocator::Glibc)) => remedies.push(glibc("")),
        // Without a stack: most memory is malloc's.
        MemoryManager::Stack(_) if is_unknown => remedies.push(glibc("where the memory is that of glibc's malloc: ")),
        MemoryManager::Allocator(Some(Allocator::Jemalloc)) => {
            let how = format!(
                "MALLOC_CONF=thp:always has jemalloc ask for huge pages (_RJEM_MALLOC_CONF in programs of Rust that link it); {price}"
            );
            remedies.push(Remedy::new(ALLOCATOR_TUNABLES, how));
        }
        _ => {}
    }
    let how = match group.place {
        MemoryManager::Stack(_) if is_unknown => "in the source: where this memory is mapped, ",
        MemoryManager::Stack(_) => {
            "in the source: map as much and one huge page more, take the part that is aligned to 2 MiB, and "
        }
        MemoryManager::Allocator(_) => {
            "in the source: for large blocks, aligned_alloc(2 MiB, ...), and before the first use "
        }
    };
    let how = format!("{how}madvise(MADV_HUGEPAGE) on whole spans of 2 MiB; {price}");
    remedies.push(Remedy { is_predicted: true, ..Remedy::new(ADVISE_HUGE_PAGES, how) });
    remedies
}
