//! From which cost on a finding is reported, as figures: what `explain` says, what a finding decides by, and what a recording could hide
//! come from the same ones.
//!
//! Leaves what the figures are, and why, to each finding, and how much a recording is, to who asks.

use slowpath_tables::{Nanos, Pages};

/// What a cost is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// The time to ready.
    TimeToReady,
    /// The time to ready, or the length of the recording of what runs already.
    TimeToReadyOrRecording,
    /// The CPU time of the processes that pay.
    CpuOfItsProcesses,
    /// The CPU time of all processes.
    CpuOfLaunch,
}

impl Whole {
    fn words(self) -> &'static str {
        match self {
            Self::TimeToReady => "the time to ready",
            Self::TimeToReadyOrRecording => "the time to ready, or of the recording of what runs",
            Self::CpuOfItsProcesses => "the CPU time of its processes",
            Self::CpuOfLaunch => "the CPU time of the launch",
        }
    }
}

/// What a cost must have besides to be one of the finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// It is waits of at least so long.
    Waits(Nanos),
    /// It is replies of which at least so much counts.
    Replies(Nanos),
    /// A program loads at least so many libraries.
    Libraries(usize),
    /// A start takes so long, or has so many pages.
    Starts {
        /// How long.
        time: Nanos,
        /// How many pages.
        pages: usize,
    },
    /// So many pages were never used, and such a share of those that were touched.
    UnusedPages {
        /// How many.
        pages: Pages,
        /// Which share.
        share: f64,
    },
}

impl Condition {
    /// `in waits of 100 ms or more`.
    pub fn words(self) -> String {
        match self {
            Self::Waits(time) => format!("in waits of {} ms or more", time.as_ms()),
            Self::Replies(time) => format!("in replies with {} ms or more", time.as_ms()),
            Self::Libraries(count) => format!("of programs with {count} libraries or more"),
            Self::Starts { time, pages } => format!("of starts with {} ms or {pages} pages", time.as_ms()),
            Self::UnusedPages { pages, share } => {
                format!("in {} pages and {:.0} % of those touched", pages.0, share * 100.0)
            }
        }
    }

    /// What one cost that has it takes at least.
    fn least_cost(self) -> Nanos {
        match self {
            Self::Waits(time) | Self::Replies(time) => time,
            Self::Libraries(_) | Self::Starts { .. } | Self::UnusedPages { .. } => Nanos(0),
        }
    }
}

/// The threshold of a finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Least cost; 0 where the share alone counts.
    pub cost: Nanos,
    /// Least share of the whole.
    pub share: f64,
    /// Of what.
    pub of: Whole,
    /// What it takes besides.
    pub condition: Option<Condition>,
}

impl Threshold {
    /// Whether a cost is worth a finding beside the whole, both in ms. That it has the condition is for the finding to see.
    pub fn is_met(&self, cost: f64, whole: f64) -> bool {
        cost > 0.0 && cost >= self.cost.as_ms() && cost >= whole * self.share
    }

    /// The same of a cost in ms whose share is known.
    pub fn is_met_by_share(&self, cost: f64, share: f64) -> bool {
        cost >= self.cost.as_ms() && share >= self.share
    }

    /// From which cost on it is always seen beside a whole, both in ms.
    pub fn least_visible(&self, whole: f64) -> f64 {
        let least = self.condition.map_or(Nanos(0), Condition::least_cost).max(self.cost);
        least.as_ms().max(whole * self.share)
    }

    /// `1 ms and 0.5 % of the CPU time of its processes`.
    pub fn words(&self) -> String {
        let percent = self.share * 100.0;
        let share = format!("{percent} % of {}", self.of.words());
        let cost = if self.cost.0 > 0 { format!("{} ms and ", self.cost.as_ms()) } else { String::new() };
        let condition = self.condition.map_or_else(String::new, |condition| format!(", {}", condition.words()));
        format!("{cost}{share}{condition}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: Threshold = Threshold {
        cost: Nanos(0),
        share: 0.02,
        of: Whole::TimeToReady,
        condition: Some(Condition::Waits(Nanos(100_000_000))),
    };
    const WORK: Threshold =
        Threshold { cost: Nanos(1_000_000), share: 0.005, of: Whole::CpuOfItsProcesses, condition: None };

    #[test]
    fn a_cost_counts_where_it_has_both_the_least_cost_and_the_least_share() {
        assert!(WORK.is_met(1.0, 200.0) && !WORK.is_met(0.99, 10.0) && !WORK.is_met(1.0, 201.0));
        assert!(WORK.is_met_by_share(1.0, 0.005) && !WORK.is_met_by_share(1.0, 0.0049));
        assert!(!WAITS.is_met(0.0, 0.0), "nothing is no cost");
    }

    #[test]
    fn the_least_visible_cost_is_the_largest_of_all_demands() {
        assert_eq!([100.0, 1000.0].map(|whole| WORK.least_visible(whole)), [1.0, 5.0]);
        assert_eq!([1000.0, 10_000.0].map(|whole| WAITS.least_visible(whole)), [100.0, 200.0]);
        for whole in [0.0, 3.0, 150.0, 1e6] {
            assert!(WORK.is_met(WORK.least_visible(whole), whole), "{whole}");
        }
    }

    #[test]
    fn the_words_have_the_figures() {
        assert_eq!(WORK.words(), "1 ms and 0.5 % of the CPU time of its processes");
        assert_eq!(WAITS.words(), "2 % of the time to ready, in waits of 100 ms or more");
    }
}
