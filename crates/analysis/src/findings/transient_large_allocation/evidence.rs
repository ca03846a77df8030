//! What proves the finding, as rows.

use super::found::TransientBlocks;
use crate::finding::{Evidence, milliseconds, row};
use crate::findings::allocating_stack::Allocator;
use crate::findings::memory_evidence::{Remedy, add_faults, add_off_cpu, parts, rounded};
use crate::findings::never_used::NeverUsed;
use crate::memory::cost_model::when_measured;
use crate::memory::memory_blocks::Block;
use crate::memory::memory_fixes::{self, MallocSettings};
use serde_json::Value;
use slowpath_tables::{Bytes, Nanos, Quantity};
use std::collections::{BTreeMap, BTreeSet};

/// Beginning of the name of the library that is the Java machine.
const JAVA_MACHINE: &str = "libjvm.so";

/// What operations and all of them cost, part by part.
pub(super) fn cost(found: &TransientBlocks<'_>) -> Evidence {
    let cost = &found.cost;
    let rows = [
        ("page faults, with the zeroing of pages", cost.faults.time()),
        ("releasing (munmap, madvise)", cost.release_time),
        ("mapping (mmap, mremap)", cost.map_time),
    ];
    parts("What the operations cost in the kernel.", &rows, found.group.operations.len() as f64)
}

/// How many operations, how large, how long they last.
pub(super) fn operations(found: &TransientBlocks<'_>) -> Evidence {
    let (cost, group) = (&found.cost, &found.group);
    let operations = group.operations.len() as u64;
    let mut shown = row([
        ("operations", Value::from(operations)),
        ("across_threads", Value::from(cost.across_threads)),
        ("at_the_same_time", Value::from(group.most_in_a_process())),
        ("not_released", Value::from(group.not_released)),
        ("size_bytes", Value::from(cost.length)),
        ("median_us", rounded(cost.per_operation.value, 1)),
        ("lifetime_p50_ms", milliseconds(cost.lifetime.0)),
        ("lifetime_p95_ms", milliseconds(cost.lifetime.1)),
        ("mapped_bytes", Value::from(cost.mapped)),
        ("touched_bytes", Value::from(cost.touched)),
    ]);
    add_faults(&mut shown, &cost.faults, operations as f64);
    add_off_cpu(&mut shown, "calls_off_cpu_ms", cost.calls_off_cpu);
    if cost.huge_faults > 0 {
        shown.insert("huge_faults".to_owned(), Value::from(cost.huge_faults));
    }
    shown.insert("per_second".to_owned(), cost.per_second.map_or(Value::Null, |rate| rounded(rate, 2)));
    let text =
        "An operation is one block that was mapped, touched and released; at_the_same_time is the most in one process.";
    Evidence { text: text.to_owned(), rows: vec![shown] }
}

/// How long blocks live, from mapping to release, in doubling steps from 2 us on.
pub(super) fn lifetimes(found: &TransientBlocks<'_>) -> Evidence {
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

/// What the pages held when they were given back; nothing where they were not looked at.
pub(super) fn never_used(found: &TransientBlocks<'_>) -> Evidence {
    let operations: BTreeSet<u32> = found.group.operations.iter().copied().collect();
    let seen = found.memory.blocks.seen.iter().filter(|page| operations.contains(&page.block));
    let percent = |share: f64| rounded(share * 100.0, 1);
    let shown = NeverUsed::of(seen).map(|unused| {
        row([
            ("looked_at_pages", Value::from(unused.looked_at)),
            ("zero_pages", Value::from(unused.zero)),
            ("never_used_percent", percent(unused.share)),
            ("never_used_percent_low", percent(unused.low)),
            ("never_used_percent_high", percent(unused.high)),
        ])
    });
    let text = "Share of the touched pages that held only zeros when they were freed, from an even sample.";
    Evidence { text: text.to_owned(), rows: shown.into_iter().collect() }
}

/// What was recorded beside what was measured; nothing where nothing was measured.
pub(super) fn saving(found: &TransientBlocks<'_>) -> Evidence {
    let when = when_measured(&found.memory.facts.tables.manifest);
    let text = format!("Predicted saving of keeping the blocks: as recorded, as measured {when}, and both.");
    let Ok(prediction) = &found.prediction else { return Evidence { text, rows: Vec::new() } };
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
    let mut rows = vec![line("durations of faults and calls", "recorded", ends(&found.cost.saving), None)];
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
    Evidence { text, rows }
}

/// The fixes that apply. Those outside of the source need an allocator that asked for the blocks.
pub(super) fn remedies(found: &TransientBlocks<'_>) -> Vec<Remedy> {
    let kept = found.group.most_in_a_process();
    let mut blocks = if kept == 1 { "one block".to_owned() } else { format!("{kept} blocks") };
    if found.group.peaks.len() > 1 {
        blocks.push_str(" in each process");
    }
    let keep = if found.stack.who_asked().is_some_and(|caller| caller.file.starts_with(JAVA_MACHINE)) {
        "the heap of the Java machine grows and shrinks: -Xms as large as -Xmx has it keep what it has".to_owned()
    } else {
        format!(
            "in the source: keep {blocks} and use it again (a member, a pool, thread-local storage), or use the data where \
             they are, without a copy"
        )
    };
    let mut remedies = vec![Remedy::new(memory_fixes::REUSE_BUFFER, keep)];
    if !found.stack.through_allocator {
        return remedies;
    }
    let other =
        "an allocator that keeps what was freed for a while (jemalloc, mimalloc, tcmalloc), by LD_PRELOAD or linked in";
    let other = Remedy::new(memory_fixes::REPLACE_ALLOCATOR, other.to_owned());
    let populate =
        "in the source: madvise(MADV_POPULATE_WRITE) on a block before it is used brings all pages in one call";
    let populate = Remedy::new(memory_fixes::POPULATE_AT_MAP, populate.to_owned());
    match found.stack.allocator {
        None | Some(Allocator::Glibc) => {}
        Some(Allocator::Musl) => {
            remedies.extend([other, populate]);
            return remedies;
        }
        // Settings of glibc are nothing to others, and none of theirs is known to keep blocks that they map one by one.
        Some(_) => {
            remedies.push(populate);
            return remedies;
        }
    }
    let length = Bytes(found.cost.length);
    let by_other_threads = found.operations().any(|block| block.mapped_by != block.process.pid);
    if let Some(settings) = MallocSettings::keeping(length, kept as u64, by_other_threads) {
        let how = format!(
            "where the allocator is that of glibc: GLIBC_TUNABLES={settings} makes it keep such blocks, at the price of \
             memory that stays with the process; other allocators have settings of their own"
        );
        remedies.push(Remedy { settings: Some(settings), ..Remedy::new(memory_fixes::ALLOCATOR_TUNABLES, how) });
    }
    remedies.push(other);
    // Where the program asked for huge pages and has them, asking once more changes nothing.
    let huge_page = found.memory.facts.tables.manifest.host.huge_page();
    let has_huge = found.cost.huge_faults.saturating_mul(huge_page.0) > found.cost.touched / 2;
    if length >= huge_page && !has_huge {
        let huge = format!(
            "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 asks for huge pages (glibc 2.35 and later): one fault for {} MiB",
            huge_page.0 >> 20
        );
        remedies.push(Remedy::new(memory_fixes::HUGE_PAGES, huge));
    }
    remedies.push(populate);
    remedies
}
