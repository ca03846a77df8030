//! What lowers the confidence of a finding, each with its reason.

use crate::finding::Confidence;
use crate::time::off_cpu_times::waits_recorded;
use slowpath_recording::Tables;
use slowpath_tables::{Losses, Quantity};

/// Share of lost events above which a claim is doubtful: a lost munmap makes one long lifetime of two short ones.
pub const LOSS_LOW: f64 = 0.01;
/// Width of the interval, as a share of the value, above which the size is uncertain.
pub const WIDTH_MEDIUM: f64 = 0.5;

/// Width of the interval as a share of the value.
pub(crate) fn width(cost: &Quantity) -> f64 {
    (cost.high.unwrap_or(cost.value) - cost.low.unwrap_or(cost.value)) / cost.value
}

/// The confidence that is left, and why.
pub(crate) struct Doubts {
    /// High until something lowers it.
    pub confidence: Confidence,
    /// Reasons, in the order in which they were found.
    pub reasons: Vec<String>,
}

impl Doubts {
    /// None yet.
    pub fn none() -> Self {
        Self { confidence: Confidence::High, reasons: Vec::new() }
    }

    /// The confidence is at most this, for a reason.
    pub fn lower(&mut self, to: Confidence, reason: impl Into<String>) {
        self.confidence = self.confidence.min(to);
        let reason = reason.into();
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Any loss is a reason for medium, more than [`LOSS_LOW`] one for low.
    pub fn of_losses(&mut self, losses: &Losses, kinds: &[&str], kept: usize, what: &str) {
        let lost = losses.of_kinds(kinds);
        if lost > 0 {
            let share = lost as f64 / lost.saturating_add(kept as u64) as f64;
            let level = if share > LOSS_LOW { Confidence::Low } else { Confidence::Medium };
            // What was lost of a kind that is not known may be of another table.
            let most = if losses.of_kinds(&[]) > 0 { "up to " } else { "" };
            self.lower(level, format!("{most}{lost} {what} were lost ({:.2} %)", share * 100.0));
        }
    }

    /// A recording without an end may have lost its last part.
    pub fn of_missing_end(&mut self, tables: &Tables) {
        if tables.manifest.ended.is_none() {
            self.lower(Confidence::Medium, "the recording has no end");
        }
    }

    /// What a cost in CPU time rests on that is made of opens and of waits: low where waits were not recorded; lost rows lower it too.
    pub fn of_time_between_opens(&mut self, tables: &Tables) {
        if !waits_recorded(tables) {
            let reason = "when threads did not run was not recorded: the cost is time by the clock (record --off-cpu gives CPU time)";
            self.lower(Confidence::Low, reason);
        }
        for (table, kept) in [("opens", tables.opens.len()), ("off_cpu", tables.off_cpu.len())] {
            self.of_losses(&tables.manifest.losses, &[table], kept, &format!("rows of {table}"));
        }
    }
}
