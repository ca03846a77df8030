//! Finding `heap_trim_churn`: memory is given back to the kernel and touched again, over and over.
//!
//! **What is bad.** An allocator that has free memory at the top of its heap gives it back (brk), or has the kernel drop pages of
//! its arenas (madvise). Where the program needs as much again in its next round, every page is a fault and is filled with zeros
//! once more. The call that gives back stands in some `free`, the faults in whatever touches first; nothing says that they belong
//! together. The same holds for programs that manage arenas of their own.
//!
//! **Cost.** Over all operations (calls of which pages came back while recording): time in the first fault of each page that came
//! back, in the calls, as far as their pages came back, and in calls of brk that made room for them again. In ms, over the whole
//! recording. What the interval says and what is not included stands in [`cost`].
//!
//! **Predicted saving.** All of it: where the memory is kept, nobody gives it back, and first touches are not part of the cost;
//! and what durations of faults lack (`prediction`). The price is memory: `held_bytes`.
//!
//! **Pages** are followed by [`crate::memory::released_pages`], which says what a release is; releases are distinguished by [`groups`]. A
//! block that is unmapped and mapped again is another pattern ([`super::transient_large_allocation`]), with all that is done to
//! its pages meanwhile.
//!
//! **No finding** when pages are not touched again: then the memory was rightly given back. When they are touched for the first
//! time. When the kernel did not take the pages of a `MADV_FREE`: there is no fault. When there are fewer than
//! [`groups::LEAST_OPERATIONS`] operations: a heap that is trimmed at the end of a phase. When it costs less than
//! [`super::materiality`] demands.
//!
//! **Confidence.** The rule and its thresholds stand in [`super::memory_confidence`]; besides, it is medium at most where memory
//! is away for [`LONG_AWAY`]: others could use it meanwhile, and whether that is worth the faults is not known here.

pub mod cost;
mod evidence;
mod found;
pub mod groups;
mod prediction;

use super::doubts::Doubts;
use super::materiality;
use super::memory_confidence::{Claim, UNKNOWN_COSTS, judge, off_cpu};
use super::memory_evidence::{MOST_FUNCTIONS, in_function, perf_target, processes, stack, subject, touching, unnamed};
use super::memory_use::MemoryUse;
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::{Confidence, Finding};
use crate::interval::summarize;
use crate::memory::cost_model::{CostModel, when_measured};
use crate::memory::released_pages::ReleaseKind;
use crate::needs::Need;
use crate::stacks::function_weights::heaviest;
use found::HeapChurn;
use serde_json::Value;
use slowpath_tables::{Nanos, Unit};
use std::collections::BTreeMap;

/// Name of the finding.
pub const NAME: &str = "heap_trim_churn";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "heap memory given back and faulted in again",
    what: "The allocator returns free memory at the top of its heap to the kernel (brk, MADV_DONTNEED), and the program soon needs it \
        again.",
    why: "Every returned page costs another page fault and is zeroed again. The call that returns memory is in some free(), the faults \
        are in whatever touches the memory next.",
    helps: "Let malloc keep the memory (allocator_tunables: trim_threshold, top_pad), replace_allocator, or reuse the \
            buffer in the source. Trade-off: the memory stays resident.",
    by_hand: "as root, while it runs: perf trace -e brk,madvise -p PID lists the calls; perf record -c 1 -e page-faults -d \
              --call-graph dwarf -p PID the addresses that fault again",
    threshold: materiality::THRESHOLD,
    needs: &[Need::MemoryCalls, Need::Faults],
    shows_in: ShowsIn::AnyWork,
    find: |input| find(input.memory),
};

/// Median time away from which on giving memory back may be meant: allocators that wait before they do (jemalloc) wait for some
/// seconds.
pub const LONG_AWAY: Nanos = Nanos(1_000_000_000);

/// Looks for the pattern in launches of one command; where there are several, in more than half of them.
pub(super) fn find<'a>(launches: &'a [Option<MemoryUse<'a>>]) -> Vec<Finding> {
    let mut by_place: BTreeMap<_, Vec<HeapChurn<'_>>> = BTreeMap::new();
    for found in launches.iter().flatten().flat_map(of_launch) {
        by_place.entry(found.key()).or_default().push(found);
    }
    by_place.into_values().filter(|found| found.len() * 2 > launches.len()).filter_map(finding).collect()
}

fn of_launch<'a>(memory: &'a MemoryUse<'a>) -> Vec<HeapChurn<'a>> {
    let faults = memory.faults();
    let numbers = cost::faults_of(&memory.churn, &memory.released);
    let found = memory.churn.iter().zip(numbers).map(|(group, numbers)| {
        let cost = cost::cost(group, &memory.released, &faults, &numbers);
        let rows = numbers.iter().map(|row| (faults.rows[*row].stack, cost.faults.weight(faults.time(*row))));
        HeapChurn {
            memory,
            stack: group.stacks.first().map(|(stack, _)| memory.stacks.get(*stack)).unwrap_or_default(),
            share: memory.share_of(cost.total.value, group.processes.iter().copied()),
            touching: heaviest(memory.call_stacks, rows, MOST_FUNCTIONS),
            group,
            cost,
        }
    });
    found.filter(|found| found.share.is_material()).collect()
}

/// Details are those of the launch in the middle: figures of several launches would not add up.
fn finding(mut launches: Vec<HeapChurn<'_>>) -> Option<Finding> {
    launches.sort_by(|a, b| a.cost.total.value.total_cmp(&b.cost.total.value));
    let found = launches.get((launches.len() - 1) / 2)?;
    let values: Vec<f64> = launches.iter().map(|found| found.cost.total.value).collect();
    let several = (launches.len() > 1).then(|| summarize(&values, Unit::Ms)).flatten();
    let cost = several.unwrap_or(found.cost.total);

    let pays = &found.group.processes;
    let claim = Claim {
        facts: found.memory.facts,
        processes: pays,
        stack: &found.stack,
        faults: &found.cost.faults,
        total: &found.cost.total,
        perhaps_huge: found.cost.perhaps_huge,
    };
    let Doubts { mut confidence, mut reasons } = judge(&claim);
    let away = found.cost.away.0;
    if away >= LONG_AWAY {
        confidence = confidence.min(Confidence::Medium);
        let away = away.as_ms() / 1e3;
        reasons
            .push(format!("memory is away for {away:.1} s (median): others can use it meanwhile, so it may be meant"));
    }
    reasons.extend(unnamed(&found.stack));
    let manifest = &found.memory.facts.tables.manifest;
    let model = manifest.memory_cost.as_ref().and_then(CostModel::new);
    let unseen = model.and_then(|model| model.unseen());
    // The first is about what was measured here.
    reasons.extend(unseen.map(|unseen| prediction::reason(unseen, when_measured(manifest))));
    reasons.extend(UNKNOWN_COSTS.iter().skip(usize::from(unseen.is_some())).map(|one| (*one).to_owned()));
    reasons.extend(off_cpu(&found.memory.facts.tables, &found.cost.faults, found.cost.calls_off_cpu));

    let remedies = evidence::remedies(found);
    let asked = "The call stack of the costliest releases, the innermost function first; asked marks the first that is \
                 not the allocator's.";
    let mut evidence = vec![
        evidence::cost(found),
        evidence::operations(found),
        stack(asked, &found.stack),
        evidence::places(found),
        touching("The functions that touched the pages again, by time in faults.", found.touching.as_ref()),
        processes(found.operations().map(|release| (release.process, release.time()))),
        super::memory_evidence::remedy_rows(&remedies),
    ];
    evidence.retain(|evidence| !evidence.rows.is_empty());
    let mut about = subject(&found.group.program, pays, &found.stack, &found.share);
    about.insert("size_bytes".to_owned(), Value::from(found.cost.length));
    about.insert("kind".to_owned(), Value::from(found.group.kind.as_str()));
    Some(Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: title(found),
        subject: about,
        cost,
        predicted_saving: Some(prediction::saving(&cost, found.cost.faults.count, unseen)),
        confidence,
        reasons,
        evidence,
        fixes: remedies.iter().map(|remedy| remedy.fix.to_owned()).collect(),
        fix_inputs: super::memory_evidence::fix_inputs(&remedies),
        see_by_hand: see_by_hand(found),
    })
}

fn title(found: &HeapChurn<'_>) -> String {
    let (program, operations) = (&found.group.program, found.group.operations.len());
    let size = found.cost.length as f64 / f64::from(1 << 20);
    let what = match found.group.kind {
        ReleaseKind::BrkTrim => "of its heap",
        ReleaseKind::DontNeed => "of its pages (MADV_DONTNEED)",
        ReleaseKind::Free => "of its pages (MADV_FREE)",
    };
    let (who, share) = (in_function(&found.stack), found.share.words());
    format!("{program} gives {size:.2} MiB {what} back{who}, {operations} times, and faults it in again: {share}")
}

fn see_by_hand(found: &HeapChurn<'_>) -> String {
    let target = perf_target(&found.group.processes);
    let call = if found.group.kind == ReleaseKind::BrkTrim { "brk" } else { "madvise" };
    format!(
        "as root, while it runs: perf trace -e {call} {target} lists the calls with their duration; \
         perf record -c 1 -e page-faults -d --call-graph dwarf {target} shows who touches the same addresses again"
    )
}
