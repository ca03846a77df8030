//! Finding `transient_large_allocation`: a large block of memory is mapped, touched and released again and again.
//!
//! **What is bad.** Allocators hand large blocks straight to the kernel. Where the program asks for one for each frame, message
//! or file, every page of it is a page fault each time: the kernel finds a page and fills it with zeros, and the program
//! overwrites them. When it is freed, every page is taken away again. None of this stands at the line that allocates; part of
//! it shows in the function that first touches the block, the rest in the kernel, perhaps in another thread.
//!
//! **Cost.** Over all operations (blocks that were mapped, touched and released while recording): time in faults, in which Linux
//! zeroes pages; in mmap; in munmap. In ms, over the whole recording. What the interval says and what is not included stands in
//! [`bill`]. Durations hold what recording a fault itself costs, and lack entering and leaving the kernel; neither is calibrated
//! here, and the second can weigh more: the twin of `cases/frame-buffer` saves more CPU time than is predicted.
//!
//! **Predicted saving.** The cost without the first uses: as many blocks as exist at the same time must be mapped once.
//!
//! **Blocks** are followed by [`crate::memory_blocks`], told apart by [`groups`] and named by their call stack. The heap of
//! brk, which shrinks and grows, is another pattern ([`super::heap_trim_churn`]), and so are mapped files and threads' stacks.
//!
//! **No finding** when there are fewer than [`groups::LEAST_OPERATIONS`] operations, or too many blocks at the same time
//! ([`groups::LEAST_REUSE`]): a large block at start, a growing collection. When blocks are smaller than
//! [`groups::LEAST_LENGTH`]: allocators keep those. When nothing was touched: mapping alone costs next to nothing. When the
//! allocator keeps the blocks itself: then there are no calls. When it costs less than [`super::materiality`] demands.
//!
//! **Confidence.** The rule and its thresholds stand in [`super::memory_confidence`].

pub mod bill;
mod evidence;
pub mod groups;

use super::allocating_stack::AllocatingStack;
use super::materiality::CostShare;
use super::memory_confidence::{Claim, UNKNOWN_COSTS, judge};
use super::memory_evidence::{MOST_FUNCTIONS, in_function, perf_target, processes, stack, subject, touching};
use super::memory_use::MemoryUse;
use crate::finding::Finding;
use crate::function_weights::{FunctionWeights, heaviest};
use crate::interval::summarize;
use crate::memory_blocks::Block;
use bill::Bill;
use groups::Group;
use serde_json::Value;
use slowpath_tables::{ProcessKey, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Name of the finding.
pub const NAME: &str = "transient_large_allocation";

/// The pattern in one launch.
struct Found<'a> {
    memory: &'a MemoryUse<'a>,
    group: &'a Group,
    bill: Bill,
    stack: AllocatingStack,
    share: CostShare,
    touching: Option<FunctionWeights>,
}

impl Found<'_> {
    fn operations(&self) -> impl Iterator<Item = &Block> {
        self.group.operations.iter().map(|number| &self.memory.blocks.blocks[*number as usize])
    }

    fn processes(&self) -> BTreeSet<ProcessKey> {
        self.group.peaks.keys().copied().collect()
    }

    /// What makes it the same in several launches.
    fn key(&self) -> (String, String, u32) {
        (self.group.program.clone(), self.stack.folded(), self.bill.length.max(1).ilog2())
    }
}

/// Looks for the pattern in launches of one command; where there are several, in more than half of them.
pub(super) fn find<'a>(launches: &'a [Option<MemoryUse<'a>>]) -> Vec<Finding> {
    let mut by_place: BTreeMap<_, Vec<Found<'_>>> = BTreeMap::new();
    for found in launches.iter().flatten().flat_map(of_launch) {
        by_place.entry(found.key()).or_default().push(found);
    }
    by_place.into_values().filter(|found| found.len() * 2 > launches.len()).filter_map(finding).collect()
}

fn of_launch<'a>(memory: &'a MemoryUse<'a>) -> Vec<Found<'a>> {
    let faults = &memory.facts.tables.faults;
    let numbers = bill::faults_of(&memory.transient, &memory.blocks);
    let found = memory.transient.iter().zip(numbers).map(|(group, numbers)| {
        let bill = bill::bill(group, &memory.blocks, faults, &numbers);
        let rows = numbers.iter().map(|number| &faults[*number]);
        let rows = rows.map(|fault| (fault.stack, fault.duration.map_or(bill.faults.median as u64, |time| time.0)));
        Found {
            memory,
            stack: memory.stacks.get(group.stack),
            share: memory.share_of(bill.total.value, group.peaks.keys().copied()),
            touching: heaviest(memory.call_stacks, rows, MOST_FUNCTIONS),
            group,
            bill,
        }
    });
    found.filter(|found| found.share.is_material()).collect()
}

/// Details are those of the launch in the middle: figures of several launches would not add up.
fn finding(mut launches: Vec<Found<'_>>) -> Option<Finding> {
    launches.sort_by(|a, b| a.bill.total.value.total_cmp(&b.bill.total.value));
    let several = (launches.len() > 1).then(|| {
        let values = |of: fn(&Found<'_>) -> f64| launches.iter().map(of).collect::<Vec<_>>();
        let cost = summarize(&values(|found| found.bill.total.value), Unit::Ms)?;
        Some((cost, summarize(&values(|found| found.bill.saving.value), Unit::Ms)?))
    });
    let found = launches.get((launches.len() - 1) / 2)?;
    let (cost, saving) = several.flatten().unwrap_or((found.bill.total, found.bill.saving));

    let mut reasons = Vec::new();
    let pays = found.processes();
    let claim = Claim {
        facts: found.memory.facts,
        processes: &pays,
        stack: &found.stack,
        faults: &found.bill.faults,
        total: &found.bill.total,
        perhaps_huge: found.bill.perhaps_huge,
    };
    let confidence = judge(&claim, &mut reasons);
    reasons.extend(UNKNOWN_COSTS.map(str::to_owned));
    let fixes = evidence::fixes(found);
    let asked = "The call stack that mapped the blocks, the innermost function first; asked marks the first that is not \
                 the allocator's.";
    let mut evidence = vec![
        evidence::bill(found),
        evidence::operations(found),
        stack(asked, &found.stack),
        touching("The functions that touched the blocks first, by time in faults.", found.touching.as_ref()),
        processes(found.operations().map(|block| (block.process, block.time()))),
        super::memory_evidence::fixes(&fixes),
    ];
    evidence.retain(|evidence| !evidence.rows.is_empty());
    let mut about = subject(&found.group.program, &pays, &found.stack, &found.share);
    about.insert("size_bytes".to_owned(), Value::from(found.bill.length));
    Some(Finding {
        name: NAME.to_owned(),
        title: title(found),
        subject: about,
        cost,
        predicted_saving: Some(saving),
        confidence,
        reasons,
        evidence,
        fixes: fixes.iter().map(|(name, _)| (*name).to_owned()).collect(),
        see_by_hand: see_by_hand(&pays),
    })
}

fn title(found: &Found<'_>) -> String {
    let (program, operations) = (&found.group.program, found.group.operations.len());
    let size = found.bill.length as f64 / f64::from(1 << 20);
    let (who, share) = (in_function(&found.stack), found.share.words());
    format!("{program} maps {size:.2} MiB anew{who}, {operations} times, and gives it back: {share}")
}

fn see_by_hand(processes: &BTreeSet<ProcessKey>) -> String {
    let target = perf_target(processes);
    format!(
        "as root, while it runs: perf trace -e mmap,munmap {target} lists the calls with their size and duration; \
         perf record -e page-faults --call-graph dwarf {target} shows who touches"
    )
}
