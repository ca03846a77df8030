//! Finding `unused_touched_pages`: pages of a block are filled with zeros, and nothing else is ever put into them.
//!
//! **What is bad.** A buffer is made larger than what goes into it and cleared as a whole (`std::vector<char>(n)`, malloc and
//! memset, an array that is set to zero "to be safe"). Each of its pages is a page fault then: the kernel fills it with zeros, and
//! the program fills it with zeros once more. What is never used costs as much time and memory as what is.
//!
//! **How it is known.** Pages are looked at when they are unmapped, when their process ends, and when the recording does (table
//! `page_contents`): a page that a fault brought and in which every byte is zero then held nothing else, or lost it again. What a
//! page held in between is not seen, nor whether it was read: a page that is only ever cleared, one that was used and cleared again,
//! and one whose zeros are data are the same from outside. Only a sample is looked at.
//!
//! **Cost.** Time in the faults in those pages, in ms, over the whole recording ([`cost`]). The program's own clearing comes on top.
//!
//! **Predicted saving.** All of it, with what durations of faults lack where that was measured, and giving the pages back ([`cost`]).
//!
//! **Blocks** are followed by [`crate::memory::memory_blocks`] and told apart by place ([`groups`], which says what does not count). A block
//! that is mapped again and again is [`super::transient_large_allocation`], which shows what share of it was never used; faults that
//! [`super::heap_trim_churn`] counts are not in it. Blocks that are counted here have no part in [`super::thp_missed`].
//!
//! **No finding** when fewer than [`LEAST_UNUSED`] pages, or less than [`LEAST_SHARE`] of those that were touched, were never used
//! (by the lower end of the interval). When memory is mapped and not touched: that costs nothing. For the heap of brk: who asked for
//! which part of it is not recorded. For mapped files. When it costs less than [`super::materiality`] demands.
//!
//! **Huge pages.** A fault that brings 2 MiB fills all of it, though one page may be used. Pages are looked at one by one then too,
//! and the cost is the share of those that were never used; that the rest of a huge page cannot be left out alone is a reason
//! for less confidence.
//!
//! **Confidence.** The rule and its thresholds stand in [`super::memory_confidence`]; besides, it is medium at most where the unused
//! pages do not lie behind the used ones, or none is used: zeros may be data then; where an allocator maps for many at once; where
//! more than [`MOST_WITHOUT_FAULT`] of the pages came without a fault that was recorded; and where looks were lost.

pub mod cost;
mod evidence;
mod found;
pub mod groups;
mod threshold;

pub(super) use threshold::is_one;
pub use threshold::{LEAST_SHARE, LEAST_UNUSED};

use super::allocating_stack::Allocator;
use super::block_places::cut_reason;
use super::doubts::Doubts;
use super::materiality;
use super::memory_confidence::{Claim, UNKNOWN_COSTS, judge, off_cpu};
use super::memory_evidence::{MOST_FUNCTIONS, in_function, perf_target, processes, stack, subject, touching};
use super::memory_use::MemoryUse;
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::{Confidence, Finding};
use crate::interval::summarize;
use crate::memory::cost_model::{CostModel, when_measured};
use crate::needs::Need;
use crate::stacks::function_weights::heaviest;
use crate::threshold::{Condition, Threshold};
use found::UnusedMemory;
use serde_json::Value;
use slowpath_tables::{Nanos, PAGE_SIZE, Unit};
use std::collections::BTreeMap;

/// Name of the finding.
pub const NAME: &str = "unused_touched_pages";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &["oversized_first_touch"],
    title: "pages zeroed and never used",
    what: "A buffer is larger than its contents and cleared as a whole; the remaining pages stay zero.",
    why: "Each of these pages costs a page fault, the kernel's zeroing, the program's own clearing, and memory.",
    helps: "right_size_buffer: allocate or clear only what is used. Trade-off: the program has to know the size, or to \
            grow the buffer.",
    by_hand: "as root, while it runs: perf record -c 1 -e page-faults -d --call-graph dwarf -p PID shows who touches which \
              addresses; /proc/PID/pagemap and a read of the pages which hold zeros",
    threshold: Threshold {
        condition: Some(Condition::UnusedPages { pages: LEAST_UNUSED, share: LEAST_SHARE }),
        ..materiality::THRESHOLD
    },
    needs: &[Need::MemoryCalls, Need::Faults, Need::PageContents],
    shows_in: ShowsIn::AnyWork,
    find: |input| find(input.memory),
};

/// Share of the pages behind the last used one, from which on the buffer is too large rather than sparse.
pub const MOSTLY_BEHIND: f64 = 0.9;

/// Share of the pages that were there without a recorded fault above which faults do not tell what was touched.
pub const MOST_WITHOUT_FAULT: f64 = 0.1;

/// Looks for the pattern in launches of one command; where there are several, in more than half of them.
pub(super) fn find<'a>(launches: &'a [Option<MemoryUse<'a>>]) -> Vec<Finding> {
    let mut by_place: BTreeMap<_, Vec<UnusedMemory<'_>>> = BTreeMap::new();
    for found in launches.iter().flatten().flat_map(of_launch) {
        by_place.entry(found.key()).or_default().push(found);
    }
    by_place.into_values().filter(|found| found.len() * 2 > launches.len()).filter_map(finding).collect()
}

fn of_launch<'a>(memory: &'a MemoryUse<'a>) -> Vec<UnusedMemory<'a>> {
    let tables = &memory.facts.tables;
    let model = tables.manifest.memory_cost.as_ref().and_then(CostModel::new);
    let found = memory.oversized.iter().map(|(group, cost)| {
        let faults = memory.faults();
        let rows = group.faults.iter().map(|row| (faults.rows[*row].stack, cost.faults.weight(faults.time(*row))));
        UnusedMemory {
            memory,
            saving: cost.saving(model.as_ref()),
            stack: memory.stacks.get(group.stack),
            share: memory.share_of(cost.total.value, group.processes.iter().copied()),
            touching: heaviest(memory.call_stacks, rows, MOST_FUNCTIONS),
            group,
            cost,
        }
    });
    found.collect()
}

/// Details are those of the launch in the middle: figures of several launches would not add up.
fn finding(mut launches: Vec<UnusedMemory<'_>>) -> Option<Finding> {
    launches.sort_by(|a, b| a.cost.total.value.total_cmp(&b.cost.total.value));
    let found = launches.get((launches.len() - 1) / 2)?;
    let several = |of: fn(&UnusedMemory<'_>) -> f64| {
        let values: Vec<f64> = launches.iter().map(of).collect();
        (values.len() > 1).then(|| summarize(&values, Unit::Ms)).flatten()
    };
    let cost = several(|found| found.cost.total.value).unwrap_or(found.cost.total);
    let saving = several(|found| found.saving().value).unwrap_or(found.saving());

    let Doubts { confidence, mut reasons } = judged(found);
    let remedies = evidence::remedies(found);
    let asked = "The call stack that mapped the blocks, the innermost function first; asked marks the first that is not the \
                 allocator's.";
    let blocks = || found.group.blocks.iter().map(|block| &found.memory.blocks.blocks[*block as usize]);
    reasons.extend(cut_reason(&found.memory.stacks, found.group.stack, blocks()));
    let mut evidence = vec![
        evidence::cost(found),
        evidence::looked_at(found),
        stack(asked, &found.stack),
        touching("The functions that touched the pages first, by time in faults.", found.touching.as_ref()),
        processes(blocks().map(|block| (block.process, block.fault_time))),
        super::memory_evidence::remedy_rows(&remedies),
    ];
    evidence.retain(|evidence| !evidence.rows.is_empty());
    let mut about = subject(&found.group.program, &found.group.processes, &found.stack, &found.share);
    about.insert("size_bytes".to_owned(), Value::from(found.cost.length));
    Some(Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: title(found),
        subject: about,
        cost,
        predicted_saving: Some(saving),
        confidence,
        reasons,
        evidence,
        fixes: remedies.iter().map(|remedy| remedy.fix.to_owned()).collect(),
        fix_inputs: super::memory_evidence::fix_inputs(&remedies),
        see_by_hand: see_by_hand(found),
    })
}

/// Applies the rule, with its reasons and what must be known to read the figures.
fn judged(found: &UnusedMemory<'_>) -> Doubts {
    let UnusedMemory { memory, group, cost, stack, .. } = found;
    let claim = Claim {
        facts: memory.facts,
        processes: &group.processes,
        stack,
        faults: &cost.faults,
        total: &cost.total,
        perhaps_huge: cost.perhaps_huge,
    };
    let mut doubts = judge(&claim);
    let mut at_most_medium = |reason: String| doubts.lower(Confidence::Medium, reason);
    if cost.used_to.0 == 0 {
        at_most_medium("all inspected pages held zeros: the zeros may be data that are read".to_owned());
    } else if cost.behind < MOSTLY_BEHIND {
        let share = cost.behind * 100.0;
        at_most_medium(format!(
            "only {share:.0} % of the unused pages lie behind the used ones: memory may be used sparsely, and its zeros be data"
        ));
    }
    let is_shared = |allocator: Option<Allocator>| stack.through_allocator && allocator != Some(Allocator::Glibc);
    if is_shared(stack.allocator) {
        at_most_medium(
            "the allocator may map memory for several callers at once: the caller who allocates may not be the one who touches".to_owned(),
        );
    }
    let there = group.without_fault + group.seen.len() as u64;
    let without = group.without_fault as f64 / there.max(1) as f64;
    if without > MOST_WITHOUT_FAULT {
        at_most_medium(format!("{:.0} % of the pages came without a fault that was recorded", without * 100.0));
    }
    let lost = memory.facts.tables.manifest.losses.of("page_contents");
    if lost > 0 {
        at_most_medium(format!("{lost} looks at pages were lost"));
    }
    let reasons = &mut doubts.reasons;
    reasons.push(
        "a page in which the program only ever wrote zeros counts as never used, and so does one that it only read or cleared \
         again: from outside they are the same"
            .to_owned(),
    );
    reasons.extend(off_cpu(&memory.facts.tables, &cost.faults, Nanos(0)));
    match &found.saving {
        Ok(_) => reasons.push(format!(
            "the predicted saving has what durations of faults lack, less what recording adds to them, as measured {}; its interval also \
             holds what as many pages cost then, with giving them back",
            when_measured(&memory.facts.tables.manifest)
        )),
        Err(why) => {
            reasons.push(UNKNOWN_COSTS[0].to_owned());
            reasons.push(format!("the predicted saving comes from durations alone: {why}"));
        }
    }
    reasons.push(
        "not included: the program's own time to clear the pages, and what that displaces from caches".to_owned(),
    );
    doubts
}

fn title(found: &UnusedMemory<'_>) -> String {
    let mib = |pages: f64| pages * PAGE_SIZE as f64 / f64::from(1 << 20);
    let (touched, unused) = (found.cost.pages as f64, found.cost.unused_pages().value);
    let (program, who, share) = (&found.group.program, in_function(&found.stack), found.share.words());
    format!("{program} touches {:.2} MiB{who} and never uses {:.2} MiB of it: {share}", mib(touched), mib(unused))
}

fn see_by_hand(found: &UnusedMemory<'_>) -> String {
    let target = perf_target(&found.group.processes);
    format!(
        "as root, while it runs: perf record -c 1 -e page-faults -d --call-graph dwarf {target} shows who touches which addresses; \
         gcore writes what the process holds, and the pages at those addresses are zeros in it"
    )
}
