//! Finding `transient_large_allocation`: a large block of memory is mapped, touched and released again and again.
//!
//! **What is bad.** Allocators hand large blocks straight to the kernel. Where the program asks for one for each frame, message
//! or file, every page of it is a page fault each time: the kernel finds a page and fills it with zeros, and the program
//! overwrites them. When it is freed, every page is taken away again. None of this stands at the line that allocates; part of
//! it shows in the function that first touches the block, the rest in the kernel, perhaps in another thread.
//!
//! **Cost.** Over all operations (blocks that were mapped, touched and released while recording): time in faults, in which Linux
//! zeroes pages; in mmap; in munmap. In ms, over the whole recording. What the interval says and what is not included stands in
//! [`cost`]. Durations hold what recording a fault itself costs, and lack entering and leaving the kernel, which can weigh more. Where
//! waits were recorded, time in which threads did not run is taken off ([`crate::time::off_cpu_times`]).
//!
//! **Predicted saving.** That of the operations without the first uses: as many blocks as exist at the same time must be mapped
//! once. Where the recording holds a measurement of what blocks cost on its machine, what durations lack or have too much is set
//! right, and the interval holds both what was recorded and what was measured ([`prediction`]). Else it is the cost.
//!
//! **Blocks** are followed by [`crate::memory::memory_blocks`], told apart by [`groups`] and named by their call stack. The heap of
//! brk, which shrinks and grows, is another pattern ([`super::heap_trim_churn`]), and so are mapped files and threads' stacks.
//!
//! **No finding** when there are fewer than [`groups::LEAST_OPERATIONS`] operations, or too many blocks at the same time
//! ([`groups::LEAST_REUSE`]): a large block at start, a growing collection. When blocks are smaller than
//! [`super::block_places::LEAST_LENGTH`]: allocators keep those. When nothing was touched: mapping alone costs next to nothing. When the
//! allocator keeps the blocks itself: then there are no calls. When it costs less than [`super::materiality`] demands.
//!
//! **Confidence.** The rule and its thresholds stand in [`super::memory_confidence`].

pub mod cost;
mod evidence;
mod found;
pub mod groups;
pub mod prediction;

use super::block_places::cut_reason;
use super::doubts::Doubts;
use super::materiality;
use super::memory_confidence::{Claim, UNKNOWN_COSTS, judge, off_cpu};
use super::memory_evidence::{MOST_FUNCTIONS, in_function, perf_target, processes, stack, subject, touching, unnamed};
use super::memory_use::MemoryUse;
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::Finding;
use crate::interval::summarize;
use crate::memory::cost_model::{CostModel, when_measured};
use crate::needs::Need;
use crate::stacks::function_weights::heaviest;
use found::TransientBlocks;
use serde_json::Value;
use slowpath_tables::{ProcessKey, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Name of the finding.
pub const NAME: &str = "transient_large_allocation";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "large blocks mapped and unmapped again and again",
    what: "The program allocates a large block for each frame, message or file; the allocator maps it from the kernel \
           and unmaps it when it is freed.",
    why: "Every page of the block is a page fault each time, zeroed by the kernel and overwritten by the program, and \
          is freed again by munmap. The cost appears in the function that first touches the block, not in the one that allocates it.",
    helps: "Keep the block (reuse_buffer in the source), let malloc keep it (allocator_tunables, replace_allocator), \
            or map it with fewer faults (huge_pages, populate_at_map). Trade-off: the memory stays resident.",
    by_hand: "as root, while it runs: perf trace -e mmap,munmap -p PID lists the calls with size and duration; perf \
              record -c 1 -e page-faults --call-graph dwarf -p PID who touches the blocks",
    threshold: materiality::THRESHOLD,
    needs: &[Need::MemoryCalls, Need::Faults],
    shows_in: ShowsIn::AnyWork,
    find: |input| find(input.memory),
};

/// Looks for the pattern in launches of one command; where there are several, in more than half of them.
pub(super) fn find<'a>(launches: &'a [Option<MemoryUse<'a>>]) -> Vec<Finding> {
    let mut by_place: BTreeMap<_, Vec<TransientBlocks<'_>>> = BTreeMap::new();
    for found in launches.iter().flatten().flat_map(of_launch) {
        by_place.entry(found.key()).or_default().push(found);
    }
    by_place.into_values().filter(|found| found.len() * 2 > launches.len()).filter_map(finding).collect()
}

fn of_launch<'a>(memory: &'a MemoryUse<'a>) -> Vec<TransientBlocks<'a>> {
    let tables = &memory.facts.tables;
    let faults = memory.faults();
    let model = tables.manifest.memory_cost.as_ref().and_then(CostModel::new);
    let numbers = cost::faults_of(&memory.transient, &memory.blocks);
    let found = memory.transient.iter().zip(numbers).map(|(group, numbers)| {
        let cost = cost::cost(group, &memory.blocks, &faults, &numbers);
        let rows = numbers.iter().map(|row| (faults.rows[*row].stack, cost.faults.weight(faults.time(*row))));
        TransientBlocks {
            memory,
            prediction: prediction::predict(group, &memory.blocks, &cost, model.as_ref()),
            stack: memory.stacks.get(group.stack),
            share: memory.share_of(cost.total.value, group.peaks.keys().copied()),
            touching: heaviest(memory.call_stacks, rows, MOST_FUNCTIONS),
            group,
            cost,
        }
    });
    found.filter(|found| found.share.is_material()).collect()
}

/// Details are those of the launch in the middle: figures of several launches would not add up.
fn finding(mut launches: Vec<TransientBlocks<'_>>) -> Option<Finding> {
    launches.sort_by(|a, b| a.cost.total.value.total_cmp(&b.cost.total.value));
    let several = (launches.len() > 1).then(|| {
        let values = |of: fn(&TransientBlocks<'_>) -> f64| launches.iter().map(of).collect::<Vec<_>>();
        let cost = summarize(&values(|found| found.cost.total.value), Unit::Ms)?;
        Some((cost, summarize(&values(|found| found.saving().value), Unit::Ms)?))
    });
    let found = launches.get((launches.len() - 1) / 2)?;
    let several = several.flatten().map(|(cost, saving)| match &found.prediction {
        Ok(one) => (cost, prediction::widened(saving, &one.saving)),
        Err(_) => (cost, saving),
    });
    let (cost, saving) = several.unwrap_or((found.cost.total, found.saving()));

    let pays = found.processes();
    let claim = Claim {
        facts: found.memory.facts,
        processes: &pays,
        stack: &found.stack,
        faults: &found.cost.faults,
        total: &found.cost.total,
        perhaps_huge: found.cost.perhaps_huge,
    };
    let Doubts { confidence, mut reasons } = judge(&claim);
    reasons.extend(unnamed(&found.stack));
    reasons.extend(cut_reason(&found.memory.stacks, found.group.stack, found.operations()));
    reasons.extend(saving_reasons(found));
    reasons.extend(off_cpu(&found.memory.facts.tables, &found.cost.faults, found.cost.calls_off_cpu));
    let copied: u64 = found.operations().map(|block| block.fork_faults).fold(0, u64::saturating_add);
    if copied > 0 {
        reasons.push(format!(
            "not counted: {copied} faults in these blocks that forks caused (pages that were copied, or given back)"
        ));
    }
    let remedies = evidence::remedies(found);
    let asked = "The call stack that mapped the blocks, the innermost function first; asked marks the first that is not \
                 the allocator's.";
    let mut evidence = vec![
        evidence::cost(found),
        evidence::operations(found),
        stack(asked, &found.stack),
        touching("The functions that touched the blocks first, by time in faults.", found.touching.as_ref()),
        evidence::lifetimes(found),
        processes(found.operations().map(|block| (block.process, block.time()))),
        evidence::never_used(found),
        evidence::saving(found),
        super::memory_evidence::remedy_rows(&remedies),
    ];
    evidence.retain(|evidence| !evidence.rows.is_empty());
    let mut about = subject(&found.group.program, &pays, &found.stack, &found.share);
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
        see_by_hand: see_by_hand(&pays),
    })
}

/// What must be known to read the predicted saving.
fn saving_reasons(found: &TransientBlocks<'_>) -> Vec<String> {
    let prediction = match &found.prediction {
        Ok(prediction) => prediction,
        Err(why) => {
            let mut reasons = UNKNOWN_COSTS.map(str::to_owned).to_vec();
            reasons.insert(1, format!("the predicted saving comes from durations alone: {why}"));
            return reasons;
        }
    };
    let (per_page, when) = (prediction.per_page, when_measured(&found.memory.facts.tables.manifest));
    let mut reasons = vec![match prediction.unseen {
        Some(unseen) => format!(
            "the predicted saving has for each fault {:.0} ns ({:.0} to {:.0}) that its duration lacks, less what recording adds to \
             it, as measured {when}; its interval also holds what as many pages cost then, {:.0} to {:.0} ns each",
            unseen.value, unseen.low, unseen.high, per_page.low, per_page.high
        ),
        None => format!(
            "the predicted saving is what as many pages cost when it was measured {when}, {:.0} to {:.0} ns each; its \
             interval also holds the durations, which hold what recording costs inside a fault and lack entering and leaving the \
             kernel",
            per_page.low, per_page.high
        ),
    }];
    if prediction.disagrees() {
        reasons.push(format!(
            "durations say {:.1} ms and the measurement {:.1} ms: caches, other CPUs, scarce memory or a cgroup make \
             faults dearer or cheaper here than they were then{}",
            prediction.recorded.value,
            prediction.calibrated.value,
            if found.memory.off_cpu.is_recorded() { "" } else { ", and threads may have been displaced in them" }
        ));
    }
    reasons.push("not included: interruptions of other CPUs, work of the kernel later and elsewhere".to_owned());
    reasons
}

fn title(found: &TransientBlocks<'_>) -> String {
    let (program, operations) = (&found.group.program, found.group.operations.len());
    let size = found.cost.length as f64 / f64::from(1 << 20);
    let (who, share) = (in_function(&found.stack), found.share.words());
    format!("{program} maps {size:.2} MiB anew{who}, {operations} times, and gives it back: {share}")
}

fn see_by_hand(processes: &BTreeSet<ProcessKey>) -> String {
    let target = perf_target(processes);
    format!(
        "as root, while it runs: perf trace -e mmap,munmap {target} lists the calls with their size and duration; \
         perf record -c 1 -e page-faults --call-graph dwarf {target} shows who touches"
    )
}
