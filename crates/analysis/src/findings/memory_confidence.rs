//! How far a finding about memory can be trusted.
//!
//! **Low** when the claim itself may be wrong:
//! - more than [`LOSS_LOW`](super::doubts::LOSS_LOW) of the faults and memory calls were lost;
//! - fewer than [`RECORDED_LOW`] of the kernel's faults of these processes were recorded;
//! - the duration of more than [`UNTIMED_LOW`] of the faults is not known;
//! - who asked for the memory, or gave it back, is not known: no stack, or one that ends inside the allocator.
//!
//! **Medium** when the size is uncertain:
//! - any loss; fewer than [`RECORDED_MEDIUM`] of the kernel's faults recorded; more than [`UNTIMED_MEDIUM`] without duration;
//! - the interval is wider than [`WIDTH_MEDIUM`] of the value;
//! - the stack ends before its outermost function, so callers that differ may be taken for one;
//! - the pages may be huge ones, so how much was touched is not known;
//! - the recording has no end.
//!
//! **High** otherwise. One recording is enough: operations repeat in it.

use super::allocating_stack::AllocatingStack;
use super::doubts::{Doubts, WIDTH_MEDIUM};
use super::fault_sums::FaultSums;
use crate::finding::Confidence;
use crate::launch_facts::LaunchFacts;
use crate::time::off_cpu_times::waits_recorded;
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey, Quantity};
use std::collections::BTreeSet;

/// Share of the kernel's faults below which the recording is doubtful.
pub const RECORDED_LOW: f64 = 0.80;
/// Share of the kernel's faults below which the size is uncertain; faults without an event (`get_user_pages`) are a few
/// per cent of a desktop program's.
pub const RECORDED_MEDIUM: f64 = 0.95;
/// Share of faults without a duration above which their time is more a guess than a sum.
pub const UNTIMED_LOW: f64 = 0.2;
/// Share of faults without a duration above which the size is uncertain.
pub const UNTIMED_MEDIUM: f64 = 0.01;

/// What must be known to read the figures, whatever the confidence.
pub(crate) const UNKNOWN_COSTS: [&str; 2] = [
    "durations hold what recording costs inside a fault, and lack entering and leaving the kernel, which can cost more: \
     neither is calibrated on this machine",
    "not included: what zeroing and unmapping displace from caches, interruptions of other CPUs, work of the kernel \
     later and elsewhere",
];

/// What a reader of a cost must know of time in which threads did not run: in its faults, and in its calls. Nothing where there was none.
pub(crate) fn off_cpu(tables: &Tables, faults: &FaultSums, calls: Nanos) -> Option<String> {
    if !waits_recorded(tables) {
        return Some(
            "durations are wall time: the cost includes time that threads were preempted or waited in a fault or a call \
             (record --off-cpu takes it off)"
                .to_owned(),
        );
    }
    let lost = tables.manifest.losses.of("off_cpu");
    let lost = if lost > 0 { format!("; {lost} waits were lost, and are in it") } else { String::new() };
    (faults.off_cpu + calls > Nanos(0) || !lost.is_empty()).then(|| {
        let (faults, calls) = (faults.off_cpu.as_ms(), calls.as_ms());
        format!(
            "not in the cost: off-CPU time of threads, preempted or waiting for a lock, {faults:.1} ms in faults and {calls:.1} \
             ms in calls; waiting for storage or for memory in a fault is in it{lost}"
        )
    })
}

const TABLES: [&str; 2] = ["faults", "memory_calls"];

/// What is judged.
pub(crate) struct Claim<'a> {
    /// The recording.
    pub facts: &'a LaunchFacts<'a>,
    /// The processes that pay.
    pub processes: &'a BTreeSet<ProcessKey>,
    /// Who asked for the memory, or gave it back.
    pub stack: &'a AllocatingStack,
    /// Faults of the cost.
    pub faults: &'a FaultSums,
    /// The cost.
    pub total: &'a Quantity,
    /// Whether pages may be huge ones.
    pub perhaps_huge: bool,
}

/// Applies the rule.
pub(crate) fn judge(claim: &Claim<'_>) -> Doubts {
    let Claim { facts, processes, stack, faults, total, perhaps_huge } = *claim;
    let mut doubts = Doubts::none();
    let tables = &facts.tables;
    let kept = tables.faults.len() + tables.memory_calls.len();
    doubts.of_losses(&tables.manifest.losses, &TABLES, kept, "faults and memory calls");
    let counted = facts.completeness().processes.iter().filter(|one| processes.contains(&one.process));
    let (recorded, kernel) = counted
        .fold((0u64, 0u64), |sum, one| (sum.0.saturating_add(one.recorded()), sum.1.saturating_add(one.kernel())));
    let share = recorded as f64 / kernel.max(1) as f64;
    if kernel > 0 && share < RECORDED_MEDIUM {
        let level = if share < RECORDED_LOW { Confidence::Low } else { Confidence::Medium };
        doubts.lower(level, format!("{:.1} % of the faults that the kernel counted here were recorded", share * 100.0));
    }
    let untimed = faults.untimed as f64 / faults.count.max(1) as f64;
    if untimed > UNTIMED_MEDIUM {
        let level = if untimed > UNTIMED_LOW { Confidence::Low } else { Confidence::Medium };
        doubts.lower(level, format!("the duration of {:.1} % of the faults is not known", untimed * 100.0));
    }
    if stack.callers.is_empty() {
        doubts
            .lower(Confidence::Low, "no call stacks of memory calls were recorded (record --stacks alloc)".to_owned());
    } else if stack.who_asked().is_none() {
        doubts.lower(
            Confidence::Low,
            "the call stack ends inside the allocator, or in code without names: the caller is not known".to_owned(),
        );
    } else if stack.is_truncated {
        doubts.lower(Confidence::Medium, "the call stack ends early: several callers may be taken for one".to_owned());
    }
    let width = total.high.unwrap_or(total.value) - total.low.unwrap_or(total.value);
    if width > total.value * WIDTH_MEDIUM {
        let share = width / total.value * 100.0;
        // What the higher end has for faults of unknown duration; the rest of the width lies between medians and sums.
        let by_untimed = (faults.high() - faults.time()) / 1e6;
        let why = if by_untimed * 2.0 > width {
            "not all faults have a known duration"
        } else if !waits_recorded(tables) {
            "some faults or calls lasted far longer than most: threads were displaced or waited in them"
        } else {
            "some faults or calls took far longer than most, even without off-CPU time"
        };
        doubts.lower(Confidence::Medium, format!("the interval is as wide as {share:.0} % of the cost: {why}"));
    }
    if perhaps_huge {
        doubts.lower(
            Confidence::Medium,
            "pages may be huge ones, and are counted as such: how much was touched is not known".to_owned(),
        );
    }
    doubts.of_missing_end(tables);
    doubts
}
