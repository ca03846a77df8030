//! How far the finding can be trusted.
//!
//! **Low**, and the title says `possibly`, when the claim itself may be wrong:
//! - the block is part of an allocator's heap: what was copied in and what was copied back may be two objects at one place;
//! - more than [`LOSS_LOW`](crate::findings::doubts::LOSS_LOW) of the memory calls and CPU samples were lost: a lost munmap makes one block of two.
//!
//! **Medium** when the use of the copies or their size is uncertain:
//! - where the data came from and went to is not known: a block through which they are handed on may be needed;
//! - any loss;
//! - the interval is wider than [`WIDTH_MEDIUM`] of the value: some 60 samples and fewer;
//! - samples and CPU time of the processes differ by more than [`DISAGREE_MEDIUM`]: the timer was held up;
//! - a call stack of the copies, or of the block, is missing or ends early;
//! - the recording has no end.
//!
//! **High** otherwise. One recording is enough: the copies repeat in it.

use super::found::CopiedBuffer;
use crate::finding::Confidence;
use crate::findings::allocating_stack::AllocatingStack;
use crate::findings::buffer_copied_back::round_trips::OtherEnd;
use crate::findings::doubts::{Doubts, WIDTH_MEDIUM, width};
use slowpath_tables::Nanos;

/// Part of the CPU time by which samples times their period may differ from it.
pub const DISAGREE_MEDIUM: f64 = 0.2;

const TABLES: [&str; 2] = ["cpu_samples", "memory_calls"];

/// Applies the rule.
pub(super) fn judge(found: &CopiedBuffer<'_>) -> Doubts {
    let mut doubts = Doubts::none();
    let tables = &found.memory.facts.tables;
    if found.trip.is_heap {
        let reason =
            "possible: the block is part of an allocator's heap, where several objects can have been at one place";
        doubts.lower(Confidence::Low, reason.to_owned());
    }
    let kept = tables.cpu_samples.len() + tables.memory_calls.len();
    doubts.of_losses(&tables.manifest.losses, &TABLES, kept, "CPU samples and memory calls");
    if found.trip.other_end == OtherEnd::Unknown {
        let reason =
            "where the data came from and went to is not known: a block through which they are handed on may be needed";
        doubts.lower(Confidence::Medium, reason.to_owned());
    }
    let width = width(&found.cost);
    if width > WIDTH_MEDIUM {
        let share = width * 100.0;
        doubts.lower(Confidence::Medium, format!("the interval is as wide as {share:.0} % of the cost: few samples"));
    }
    if let Some(ratio) = sampled_share(found).filter(|ratio| (ratio - 1.0).abs() > DISAGREE_MEDIUM) {
        let share = ratio * 100.0;
        doubts.lower(
            Confidence::Medium,
            format!("samples times their period are {share:.0} % of the CPU time of the processes"),
        );
    }
    let trip = found.trip;
    let is_whole = |stack: &AllocatingStack| stack.who_asked().is_some() && !stack.is_truncated;
    if !is_whole(&found.main_site(&trip.copied_in)) || !is_whole(&found.main_site(&trip.copied_back)) {
        doubts.lower(
            Confidence::Medium,
            "the call stack of a copy ends early: who copies is not known for sure".to_owned(),
        );
    }
    if !is_whole(&found.allocates) && !trip.is_heap {
        let reason =
            "the call stack that mapped the block is missing or ends early: who allocates it is not known for sure";
        doubts.lower(Confidence::Medium, reason.to_owned());
    }
    doubts.of_missing_end(tables);
    doubts
}

/// Samples times their period beside the CPU time of the processes; `None` where that is not known. What recording faults took counts as
/// far as it was sampled: Linux 6.18 keeps interrupts away from it and samples its end, kernels that do not drop such a sample.
fn sampled_share(found: &CopiedBuffer<'_>) -> Option<f64> {
    let processes = &found.trip.processes;
    let samples = &found.memory.facts.tables.cpu_samples;
    let samples = samples.iter().filter(|row| processes.contains(&row.process())).count();
    let own = found.memory.cpu_time_of(processes.iter().copied()).filter(|time| time.0 > 0)?;
    let recording = found.memory.facts.recording().totals();
    let recording: Nanos = recording.filter(|((one, _), _)| processes.contains(one)).map(|(_, time)| time).sum();
    let sampled = samples as f64 * 1e9 / found.hertz as f64;
    Some(sampled / sampled.clamp(own.0 as f64, own.0 as f64 + recording.0 as f64))
}
