//! How far a deferred cost can be trusted.
//!
//! **Low** when the claim itself may be wrong:
//! - more than [`LOSS_LOW`] of the rows of `memory_work` were lost;
//! - the interval is wider than its value: the two ways to the share contradict each other;
//! - it was not recorded who woke the threads and whose memory they worked on.
//!
//! **Medium** when the size is uncertain:
//! - any loss;
//! - the interval is wider than [`WIDTH_MEDIUM`] of its value;
//! - the share of a thread is known in one way only;
//! - there were fewer than [`FEW_WAKE_UPS`] wake-ups of a thread: a sample of a few;
//! - the recording has no end.
//!
//! **High** otherwise.

use super::Found;
use crate::deferred_memory::Way;
use crate::finding::Confidence;
use crate::findings::memory_confidence::{LOSS_LOW, WIDTH_MEDIUM};

/// Width of the interval, as a share of the value, above which the two ways contradict each other.
const WIDTH_LOW: f64 = 1.0;

/// Wake-ups below which their shares say little: with ten, one more or less is a tenth.
const FEW_WAKE_UPS: f64 = 10.0;

/// What must be known to read the figures, whatever the confidence.
const UNKNOWN: &str = "shares are told by what can be counted: who woke a thread was not alone in using memory, and pages that the \
                       kernel itself needed for the program are not counted as its own";

/// Applies the rule; gives the reasons for anything less than high.
pub(super) fn judge(found: &Found<'_>, reasons: &mut Vec<String>) -> Confidence {
    let mut confidence = Confidence::High;
    let mut lower = |to: Confidence, reason: String| {
        confidence = confidence.min(to);
        reasons.push(reason);
    };
    let tables = &found.facts.tables;
    let lost = tables.manifest.losses.of("memory_work");
    if lost > 0 {
        let share = lost as f64 / lost.saturating_add(tables.memory_work.len() as u64) as f64;
        let level = if share > LOSS_LOW { Confidence::Low } else { Confidence::Medium };
        lower(level, format!("{lost} rows of memory_work were lost ({:.2} %)", share * 100.0));
    }
    if !found.memory.has_events {
        lower(Confidence::Low, "who woke the threads, and whose memory they worked on, was not recorded".to_owned());
    }
    let width = found.cost.high.unwrap_or(found.cost.value) - found.cost.low.unwrap_or(found.cost.value);
    let width = width / found.cost.value;
    if width > WIDTH_MEDIUM {
        let level = if width > WIDTH_LOW { Confidence::Low } else { Confidence::Medium };
        let share = width * 100.0;
        lower(level, format!("the interval is as wide as {share:.0} % of the cost: the two ways to the share differ"));
    }
    for thread in found.charged() {
        let name = &thread.thread;
        if let ([only], true) = (thread.ways.as_slice(), found.memory.has_events) {
            lower(Confidence::Medium, format!("the share of {name} is known by {} only", only.way.words()));
        }
        if let Some(few) = thread.ways.iter().find(|way| way.way == Way::WakeUps && way.all < FEW_WAKE_UPS) {
            lower(Confidence::Medium, format!("{name} was woken {:.0} times: who did is a small sample", few.all));
        }
    }
    if tables.manifest.ended.is_none() {
        lower(Confidence::Medium, "the recording has no end".to_owned());
    }
    reasons.push(UNKNOWN.to_owned());
    confidence
}
