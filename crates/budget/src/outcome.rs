//! What a check found, as `--json` prints it, and the words for a limit.
//!
//! Owns the schema `slowpath-check/1` and how a measured value is said. Leaves the screen to the command, which escapes what is the
//! target's.

use crate::responsible::Responsible;
use crate::{Judged, Limit, Subject, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_experiment::Estimate;
use slowpath_tables::{Quantity, Unavailable, Unit};
use slowpath_verify::{Measures, Metric};
use std::collections::BTreeMap;

/// Name and version of the schema.
pub const SCHEMA: &str = "slowpath-check/1";

/// What `slowpath check --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Check {
    /// `slowpath-check/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// Command line.
    pub command: Vec<String>,
    /// When the command was ready.
    pub ready: String,
    /// How warm or cold the launches were.
    pub conditions: Vec<String>,
    /// Exceeded where one limit is; unavailable where one could not be measured; undecided where one is.
    pub verdict: Verdict,
    /// The limits, in the order of the budget.
    pub limits: Vec<CheckedLimit>,
    /// Who is responsible for what was exceeded, as far as a recording shows.
    pub responsible: Vec<Responsible>,
    /// The recording: the directory given, or that of one more launch, which is not kept; null where there was none.
    pub recording: Option<String>,
    /// What could not be observed.
    pub unavailable: Vec<Unavailable>,
    /// Why no more launches were made.
    pub ended: String,
    /// The numbers of every launch that counts.
    pub launches: Vec<Measures>,
    /// Unit of every metric.
    pub units: BTreeMap<Metric, Unit>,
    /// Launches that ran and were not cold as they were to be.
    pub discarded: u32,
    /// Launches that were not ready.
    pub failed: u32,
    /// Why launches do not count.
    pub reasons: Vec<String>,
}

/// A limit and what was found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckedLimit {
    /// Its key.
    pub name: String,
    /// Its value as written in the budget.
    pub written: String,
    /// Its value.
    pub budget: Quantity,
    /// The quantile of a time that is limited, 0.5 for the median; null for what holds for every launch.
    pub quantile: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The median or quantile of a time with its interval; the largest value of a count or a size.
    pub measured: Option<Quantity>,
    /// Level of the interval: that of the look that decided, so that all looks and limits together hold with 95 %.
    pub level: Option<f64>,
    /// The smallest value of a launch.
    pub smallest: Option<f64>,
    /// The largest value of a launch.
    pub largest: Option<f64>,
    /// Launches above the limit.
    pub above: u32,
    /// Launches that were looked at.
    pub launches: u32,
    /// Whether the value is that of a recorded launch.
    pub recorded: bool,
    /// What else a reader must know.
    pub reason: Option<String>,
}

impl CheckedLimit {
    /// A limit and its verdict.
    pub fn new(limit: &Limit, judged: Judged) -> Self {
        let unit = limit.subject.unit();
        let quantile = match limit.subject {
            Subject::Time { quantile, .. } => Some(quantile),
            _ => None,
        };
        let largest = judged.range.map(|(_, largest)| largest);
        let exact = largest.filter(|_| quantile.is_none()).map(|largest| Quantity::exact(largest, unit));
        Self {
            name: limit.name.clone(),
            written: limit.written.clone(),
            budget: Quantity::exact(limit.budget, unit),
            quantile,
            verdict: judged.verdict,
            measured: judged.estimate.map(|estimate| quantity(estimate, unit)).or(exact),
            level: judged.level,
            smallest: judged.range.map(|(smallest, _)| smallest),
            largest,
            above: u32::try_from(judged.above).unwrap_or(u32::MAX),
            launches: u32::try_from(judged.launches).unwrap_or(u32::MAX),
            recorded: limit.subject.needs_recording(),
            reason: judged.reason,
        }
    }

    /// What was measured, in words.
    pub fn measured(&self) -> String {
        let unit = self.budget.unit;
        let (Some(measured), Some(smallest), Some(largest)) = (self.measured, self.smallest, self.largest) else {
            return "-".to_owned();
        };
        // Above a limit by less than the digits show: all digits.
        let least = measured.low.unwrap_or(largest);
        let hidden = self.verdict == Verdict::Exceeded && shown(least, unit) == shown(self.budget.value, unit);
        let shown = |value: f64| if hidden { whole(value, unit) } else { shown(value, unit) };
        if self.recorded {
            return format!("{} in the recorded launch", shown(largest));
        }
        if self.quantile.is_some() {
            return match measured.low.zip(measured.high) {
                Some((low, high)) => format!("{} ({} to {})", shown(measured.value), shown(low), shown(high)),
                None => format!("{} (no interval)", shown(measured.value)),
            };
        }
        let range =
            if smallest == largest { shown(largest) } else { format!("{} to {}", shown(smallest), shown(largest)) };
        match self.above {
            0 => range,
            above => format!("{range}; {above} of {} above", launches(self.launches as usize)),
        }
    }
}

fn quantity(estimate: Estimate, unit: Unit) -> Quantity {
    Quantity { value: estimate.value, low: estimate.low, high: estimate.high, unit }
}

/// A number of launches.
pub fn launches(number: usize) -> String {
    if number == 1 { "1 launch".to_owned() } else { format!("{number} launches") }
}

/// A value with all its digits.
fn whole(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => format!("{value} B"),
        Unit::Count => format!("{value}"),
        _ => format!("{value:.6} ms"),
    }
}

/// A value with the digits that matter.
pub fn shown(value: f64, unit: Unit) -> String {
    let digits = |value: f64| match value {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    let scaled = |value: f64, word: &str| format!("{value:.*} {word}", digits(value));
    match unit {
        Unit::Count => format!("{value:.0}"),
        Unit::Bytes if value >= 1e9 => scaled(value / 1e9, "GB"),
        Unit::Bytes if value >= 1e6 => scaled(value / 1e6, "MB"),
        Unit::Bytes if value >= 1e3 => scaled(value / 1e3, "kB"),
        Unit::Bytes => format!("{value:.0} B"),
        _ => scaled(value, "ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use crate::verdict::{Counted, exact, recorded};

    fn checked(limit: &str, judge: impl Fn(f64) -> Judged) -> CheckedLimit {
        let limit = file::parse(&format!("[limits]\n{limit}")).unwrap().limits.remove(0);
        let judged = judge(limit.budget);
        CheckedLimit::new(&limit, judged)
    }

    #[test]
    fn a_range_says_how_many_launches_were_above() {
        let faults = checked("minor_faults = 10", |budget| exact(budget, &[9.0, 12.0, 11.0]));
        assert_eq!(faults.measured(), "9 to 12; 2 of 3 launches above");
        assert_eq!(checked("major_faults = 1", |budget| exact(budget, &[1.0, 1.0])).measured(), "1");
        assert_eq!(
            checked("denied_opens = 0", |budget| recorded(budget, &Counted { number: 3, ..Counted::default() }))
                .measured(),
            "3 in the recorded launch"
        );
        assert_eq!(checked("processes = 1", |_| Judged::unavailable("x")).measured(), "-");
    }

    #[test]
    fn a_value_barely_above_its_limit_shows_the_digits_that_tell() {
        let bytes = checked("bytes_read = \"12MB\"", |budget| exact(budget, &[12_000_512.0]));
        assert_eq!(bytes.measured(), "12000512 B; 1 of 1 launch above");
        assert_eq!(
            checked("bytes_read = \"1MB\"", |budget| exact(budget, &[12_000_512.0])).measured(),
            "12.0 MB; 1 of 1 launch above"
        );
    }

    #[test]
    fn a_time_barely_above_its_limit_shows_them_too() {
        let estimate = slowpath_experiment::Estimate { value: 62.0, low: Some(60.0004), high: Some(70.0) };
        let time = checked("wall = \"60ms\"", |budget| Judged {
            verdict: Verdict::Exceeded,
            estimate: Some(estimate),
            ..exact(budget, &[62.0])
        });
        assert_eq!(time.measured(), "62.000000 ms (60.000400 ms to 70.000000 ms)");
    }
}
