//! From launches and a recording to a check: every limit judged, and who is responsible for those that were exceeded.

use crate::file::{Limit, Subject};
use crate::outcome::{self, Check, CheckedLimit};
use crate::responsible::Seen;
use crate::verdict::{self, Judged, Times, Verdict};
use slowpath_tables::Unavailable;
use slowpath_verify::{ArmResult, Measures, Metric};
use std::collections::BTreeMap;

/// What a recording showed.
pub enum Looked {
    /// No limit needed one.
    NotNeeded,
    /// There is one.
    Seen(Seen),
    /// This machine could not make one.
    Impossible(Vec<Unavailable>),
}

/// Judges a limit by the launches of one arm and what a recording showed; without `looked` what needs a recording is not known.
pub fn judged(limit: &Limit, result: &ArmResult, times: &Times, looked: Option<&Looked>) -> Judged {
    let seen = match looked {
        Some(Looked::Seen(seen)) => Some(seen),
        _ => None,
    };
    // Where a recorded launch had no second process, nobody is missing.
    let is_alone = seen.is_some_and(|seen| seen.processes.is_known_to_be(1));
    let doubt = |metric: Metric| result.missing_children(metric).filter(|_| !is_alone);
    match (limit.subject, seen) {
        (Subject::Time { metric, .. }, _) => {
            let judged = times.judged(&limit.name).cloned();
            judged.unwrap_or_else(|| Judged::unavailable("no launch was looked at")).doubted(doubt(metric))
        }
        (Subject::Largest(metric), _) => verdict::exact(limit.budget, &result.values(metric)).doubted(doubt(metric)),
        (Subject::Processes, Some(seen)) => verdict::recorded(limit.budget, &seen.processes),
        (Subject::DeniedOpens, Some(seen)) => verdict::recorded(limit.budget, &seen.denied_opens),
        (Subject::ColdBytes, Some(seen)) => verdict::recorded(limit.budget, &seen.cold_bytes),
        (Subject::Processes | Subject::DeniedOpens | Subject::ColdBytes, None) => {
            Judged::unavailable("it takes a recording")
        }
    }
}

/// What was launched, and how.
#[derive(Clone, Debug)]
pub struct Launched {
    /// Command line.
    pub command: Vec<String>,
    /// When it is ready, in words.
    pub ready: String,
    /// Conditions of the launches.
    pub conditions: Vec<String>,
    /// The directory of the recording that was given; `None`: one was made for the check, or none was needed.
    pub recording: Option<String>,
    /// Why no more launches were made.
    pub ended: String,
}

/// Everything that a check says.
pub fn assembled(launched: Launched, result: &ArmResult, limits: Vec<CheckedLimit>, looked: Looked) -> Check {
    let exceeded = |name: &str| limits.iter().any(|limit| limit.name == name && limit.verdict == Verdict::Exceeded);
    let (responsible, unavailable, recording) = match looked {
        Looked::Seen(seen) => {
            let responsible = seen.responsible.into_iter().filter(|one| exceeded(&one.limit)).collect();
            (responsible, Vec::new(), Some(launched.recording.unwrap_or_else(|| "one more launch".to_owned())))
        }
        Looked::Impossible(gaps) => (Vec::new(), gaps, None),
        Looked::NotNeeded => (Vec::new(), Vec::new(), None),
    };
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in result.discarded.iter().chain(&result.failed) {
        *reasons.entry(reason).or_default() += 1;
    }
    let launches: Vec<Measures> = result.launches.iter().flatten().map(|launch| launch.measures.clone()).collect();
    Check {
        schema: outcome::SCHEMA,
        command: launched.command,
        ready: launched.ready,
        conditions: launched.conditions,
        verdict: Verdict::overall(limits.iter().map(|limit| limit.verdict)),
        limits,
        responsible,
        recording,
        unavailable,
        ended: launched.ended,
        launches,
        units: Metric::ALL.map(|metric| (metric, metric.unit())).into(),
        discarded: u32::try_from(result.discarded.len()).unwrap_or(u32::MAX),
        failed: u32::try_from(result.failed.len()).unwrap_or(u32::MAX),
        reasons: reasons.into_iter().map(|(reason, count)| format!("{count} x {reason}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_verify::comparison::Measured;

    #[test]
    fn a_number_without_the_children_can_be_too_much_and_not_little_enough() {
        let judged = |lacks_children: bool, text: &str, metric: Metric, value: f64| {
            let budget = crate::parse(&format!("[limits]\n{text}\n")).unwrap();
            let launch = Measured { measures: [(metric, value)].into(), lacks_children, ..Measured::default() };
            let result = ArmResult { launches: vec![Some(launch); 10], ..ArmResult::default() };
            let mut times = Times::new(&budget.limits, 10, None);
            times.is_enough(|metric| result.values(metric), 10, true);
            let judged = super::judged(&budget.limits[0], &result, &times, None);
            (judged.verdict, judged.reason.is_some())
        };
        for (text, metric) in [("cpu = \"100ms\"", Metric::Cpu), ("minor_faults = 100", Metric::MinorFaults)] {
            assert_eq!(judged(false, text, metric, 20.0), (Verdict::Within, false));
            assert_eq!(judged(true, text, metric, 20.0), (Verdict::Undecided, true));
            assert_eq!(judged(true, text, metric, 300.0), (Verdict::Exceeded, true));
        }
        assert_eq!(judged(true, "wall = \"100ms\"", Metric::Wall, 20.0), (Verdict::Within, false));
    }
}
