//! What proves the finding, as rows.

use super::Found;
use crate::finding::{Evidence, Row, milliseconds, row};
use crate::memory_blocks::Block;
use crate::memory_fixes::{self, MallocSettings};
use serde_json::Value;
use slowpath_tables::{Bytes, Nanos, Quantity};
use std::collections::BTreeMap;

/// Functions of a stack, and functions that touch, at most.
const MOST_ROWS: usize = 30;

fn rounded(value: f64, digits: i32) -> Value {
    let scale = 10f64.powi(digits);
    Value::from((value * scale).round() / scale)
}

/// What operations and all of them cost, part by part.
pub(super) fn bill(found: &Found<'_>) -> Evidence {
    let bill = &found.bill;
    let operations = found.group.operations.len() as f64;
    let part = |name: &str, nanos: f64| {
        row([
            ("part", Value::from(name)),
            ("total_ms", rounded(nanos / 1e6, 3)),
            ("mean_per_operation_us", rounded(nanos / operations / 1e3, 1)),
        ])
    };
    let mut rows = vec![
        part("page faults, with the zeroing of pages", bill.fault_time),
        part("releasing (munmap, madvise)", bill.release_time),
        part("mapping (mmap, mremap)", bill.map_time),
    ];
    let total = |row: &Row| row["total_ms"].as_f64().unwrap_or_default();
    rows.sort_by(|a, b| total(b).total_cmp(&total(a)));
    rows.push(part("sum", bill.fault_time + bill.release_time + bill.map_time));
    Evidence { text: "What the operations cost in the kernel.".to_owned(), rows }
}

/// How many operations, how large, how long they last.
pub(super) fn operations(found: &Found<'_>) -> Evidence {
    let (bill, group) = (&found.bill, &found.group);
    let operations = group.operations.len() as u64;
    let mut shown = row([
        ("operations", Value::from(operations)),
        ("across_threads", Value::from(bill.across_threads)),
        ("at_the_same_time", Value::from(group.most_in_a_process())),
        ("not_released", Value::from(group.not_released)),
        ("size_bytes", Value::from(bill.length)),
        ("median_us", rounded(bill.per_operation.value, 1)),
        ("lifetime_p50_ms", milliseconds(bill.lifetime.0)),
        ("lifetime_p95_ms", milliseconds(bill.lifetime.1)),
        ("faults", Value::from(bill.faults)),
        ("faults_per_operation", rounded(bill.faults as f64 / operations.max(1) as f64, 1)),
        ("fault_median_us", rounded(bill.median_fault / 1e3, 3)),
        ("faults_by_kernel", Value::from(bill.by_kernel)),
        ("major_faults", Value::from(bill.major)),
        ("untimed_faults", Value::from(bill.untimed)),
        ("mapped_bytes", Value::from(bill.mapped)),
        ("touched_bytes", Value::from(bill.touched)),
    ]);
    shown.insert("per_second".to_owned(), bill.per_second.map_or(Value::Null, |rate| rounded(rate, 2)));
    let text =
        "An operation is one block that was mapped, touched and released; at_the_same_time is the most in one process.";
    Evidence { text: text.to_owned(), rows: vec![shown] }
}

/// How long blocks live, from mapping to release, in doubling steps from 2 us on.
pub(super) fn lifetimes(found: &Found<'_>) -> Evidence {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for lifetime in found.operations().filter_map(Block::lifetime) {
        *counts.entry((lifetime.0 / 1000).max(1).ilog2()).or_default() += 1;
    }
    let all = counts.values().sum::<u64>().max(1) as f64;
    let steps = counts.keys().next().zip(counts.keys().next_back());
    let rows = steps.into_iter().flat_map(|(first, last)| *first..=*last).map(|step| {
        let blocks = counts.get(&step).copied().unwrap_or_default();
        let from = if step == 0 { 0 } else { 1000 << step };
        row([
            ("lifetime_from_ms", milliseconds(Nanos(from))),
            ("lifetime_to_ms", milliseconds(Nanos(2000 << step))),
            ("operations", Value::from(blocks)),
            ("operations_percent", rounded(blocks as f64 / all * 100.0, 1)),
        ])
    });
    Evidence { text: "How long the blocks live, from mapping to release.".to_owned(), rows: rows.collect() }
}

/// The functions of the allocating stack, the innermost first.
pub(super) fn stack(found: &Found<'_>) -> Evidence {
    let rows = found.stack.callers.iter().take(MOST_ROWS).enumerate().map(|(number, caller)| {
        let mut shown = row([
            ("function", Value::from(caller.function.as_str())),
            ("file", Value::from(caller.file.as_str())),
            ("asked", Value::from(number == found.stack.asked)),
        ]);
        if let Some((source, line)) = &caller.source {
            shown.insert("source_file".to_owned(), Value::from(source.as_str()));
            shown.insert("source_line".to_owned(), line.map_or(Value::Null, Value::from));
        }
        shown
    });
    let text = "The call stack that mapped the blocks, the innermost function first; asked marks the first that is not \
                the allocator's.";
    Evidence { text: text.to_owned(), rows: rows.collect() }
}

/// Who took the faults; nothing where faults have no stacks.
pub(super) fn touching(found: &Found<'_>) -> Evidence {
    let functions = found.touching.iter().flat_map(|weights| &weights.functions);
    let rows = functions.map(|one| {
        row([
            ("function", one.function.as_deref().map_or(Value::Null, Value::from)),
            ("file", Value::from(one.place.as_str())),
            ("fault_ms", milliseconds(Nanos(one.weight))),
        ])
    });
    Evidence {
        text: "The functions that touched the blocks first, by time in faults.".to_owned(),
        rows: rows.collect(),
    }
}

/// Where the program runs in several processes, those with most operations.
pub(super) fn processes(found: &Found<'_>) -> Evidence {
    let mut sums: BTreeMap<_, (u64, Nanos)> = BTreeMap::new();
    for block in found.operations() {
        let sum = sums.entry(block.process).or_default();
        *sum = (sum.0 + 1, sum.1 + block.time());
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(process, (_, time))| (std::cmp::Reverse(*time), *process));
    let rows = sums.iter().filter(|_| sums.len() > 1).take(MOST_ROWS).map(|(process, (operations, time))| {
        row([
            ("pid", Value::from(process.pid)),
            ("operations", Value::from(*operations)),
            ("total_ms", milliseconds(*time)),
        ])
    });
    Evidence { text: "The processes with most of it.".to_owned(), rows: rows.collect() }
}

/// A fix that applies.
pub(super) struct WayOut {
    /// Its name.
    pub fix: &'static str,
    how: String,
    /// What the allocator is to be told.
    settings: Option<MallocSettings>,
}

/// What was recorded beside what was measured before; nothing where nothing was measured.
pub(super) fn saving(found: &Found<'_>) -> Evidence {
    let text = "What keeping the blocks is predicted to save: what was recorded, what was measured before the recording, and both.";
    let Ok(prediction) = &found.prediction else { return Evidence { text: text.to_owned(), rows: Vec::new() } };
    let line = |name: &str, source: &str, value: [f64; 3], each: Option<(&str, f64)>| {
        let mut shown = row([
            ("saved", Value::from(name)),
            ("source", Value::from(source)),
            ("saved_ms", rounded(value[0], 3)),
            ("low_ms", rounded(value[1], 3)),
            ("high_ms", rounded(value[2], 3)),
        ]);
        shown.extend(each.map(|(name, value)| (name.to_owned(), rounded(value, 1))));
        shown
    };
    let ends = |one: &Quantity| [one.value, one.low.unwrap_or(one.value), one.high.unwrap_or(one.value)];
    let mut rows = vec![line("durations of faults and calls", "recorded", ends(&found.bill.saving), None)];
    if let Some(unseen) = prediction.unseen {
        let all = [unseen.value, unseen.low, unseen.high].map(|ns| ns * prediction.faults as f64 / 1e6);
        let each = Some(("ns_per_fault", unseen.value));
        rows.push(line("what they lack, less what recording adds", "calibrated", all, each));
        rows.push(line("the two together", "recorded and calibrated", ends(&prediction.recorded), None));
    }
    let each = Some(("ns_per_page", prediction.per_page.value));
    let mut pages = line("as many pages of blocks of this size", "calibrated", ends(&prediction.calibrated), each);
    pages.insert("pages".to_owned(), Value::from(prediction.pages));
    rows.push(pages);
    rows.push(line("predicted", "all of these", ends(&prediction.saving), None));
    Evidence { text: text.to_owned(), rows }
}

/// The fixes that apply. Those outside of the source need an allocator that asked for the blocks.
pub(super) fn ways_out(found: &Found<'_>) -> Vec<WayOut> {
    let kept = found.group.most_in_a_process();
    let mut blocks = if kept == 1 { "one block".to_owned() } else { format!("{kept} blocks") };
    if found.group.peaks.len() > 1 {
        blocks.push_str(" in each process");
    }
    let way = |fix, how: String| WayOut { fix, how, settings: None };
    let mut ways = vec![way(
        memory_fixes::KEEP_BUFFER,
        format!(
            "in the source: keep {blocks} and use it again (a member, a pool, thread-local storage), or use the data where \
             they are, without a copy"
        ),
    )];
    if !found.stack.through_allocator {
        return ways;
    }
    let length = Bytes(found.bill.length);
    if let Some(settings) = MallocSettings::keeping(length, kept as u64) {
        let how = format!(
            "where the allocator is that of glibc: GLIBC_TUNABLES={settings} makes it keep such blocks, at the price of \
             memory that stays with the process; other allocators have settings of their own"
        );
        ways.push(WayOut { settings: Some(settings), ..way(memory_fixes::ALLOCATOR_TUNABLES, how) });
    }
    let other =
        "an allocator that keeps what was freed for a while (jemalloc, mimalloc, tcmalloc), by LD_PRELOAD or linked in";
    ways.push(way(memory_fixes::ANOTHER_ALLOCATOR, other.to_owned()));
    if length >= memory_fixes::HUGE_PAGE {
        let huge =
            "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 asks for huge pages (glibc 2.35 and later): one fault for 2 MiB";
        ways.push(way(memory_fixes::HUGE_PAGES, huge.to_owned()));
    }
    let populate =
        "in the source: madvise(MADV_POPULATE_WRITE) on a block before it is used brings all pages in one call";
    ways.push(way(memory_fixes::POPULATE_AT_MAP, populate.to_owned()));
    ways
}

/// What would end it, row by row: `settings` is for whoever tries it.
pub(super) fn fixes(found: &Found<'_>) -> Evidence {
    let rows = ways_out(found).into_iter().map(|way| {
        let mut shown = row([("fix", Value::from(way.fix)), ("how", Value::from(way.how))]);
        shown.extend(way.settings.map(|settings| ("settings".to_owned(), Value::from(settings.to_string()))));
        shown
    });
    Evidence { text: "What would end it, or make it cheaper.".to_owned(), rows: rows.collect() }
}
