//! How far the cost of background reclaim can be trusted.
//!
//! **Low** when the claim itself may be wrong:
//! - more than [`LOSS_LOW`](crate::findings::doubts::LOSS_LOW) of the rows of `memory_work` were lost;
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

use super::found::ReclaimCost;
use crate::finding::Confidence;
use crate::findings::doubts::{Doubts, WIDTH_MEDIUM, width};
use crate::memory::background_reclaim::Attribution;

/// Width of the interval, as a share of the value, above which the two ways contradict each other.
const WIDTH_LOW: f64 = 1.0;

/// Wake-ups below which their shares say little: with ten, one more or less is a tenth.
const FEW_WAKE_UPS: f64 = 10.0;

/// What must be known to read the figures, whatever the confidence.
const UNKNOWN: &str = "shares are estimates from counts: the process that woke a thread was not alone in using memory, and pages \
that the \
                       kernel itself needed for the program are not counted as its own";

/// Applies the rule.
pub(super) fn judge(found: &ReclaimCost<'_>) -> Doubts {
    let mut doubts = Doubts::none();
    let tables = &found.facts.tables;
    doubts.of_losses(&tables.manifest.losses, &["memory_work"], tables.memory_work.len(), "rows of memory_work");
    if !found.memory.has_events {
        doubts.lower(
            Confidence::Low,
            "it was not recorded who woke the threads, and whose memory they worked on".to_owned(),
        );
    }
    let width = width(&found.cost);
    if width > WIDTH_MEDIUM {
        let level = if width > WIDTH_LOW { Confidence::Low } else { Confidence::Medium };
        let share = width * 100.0;
        doubts.lower(
            level,
            format!("the interval is as wide as {share:.0} % of the cost: the two estimates of the share differ"),
        );
    }
    for thread in found.charged() {
        let name = &thread.thread;
        if let ([only], true) = (thread.ways.as_slice(), found.memory.has_events) {
            doubts.lower(Confidence::Medium, format!("the share of {name} is known by {} only", only.way.words()));
        }
        if let Some(few) = thread.ways.iter().find(|way| way.way == Attribution::WakeUps && way.all < FEW_WAKE_UPS) {
            doubts
                .lower(Confidence::Medium, format!("{name} was woken {:.0} times: who did is a small sample", few.all));
        }
    }
    doubts.of_missing_end(tables);
    doubts.reasons.push(UNKNOWN.to_owned());
    doubts
}
