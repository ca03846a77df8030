//! From launches and a recording to a check: every limit judged, and who is responsible for those that were exceeded.

use crate::file::{Limit, Subject};
use crate::outcome::{self, Check, CheckedLimit};
use crate::responsible::Seen;
use crate::verdict::{self, Judged, Times, Verdict};
use slowpath_tables::Unavailable;
use slowpath_verify::{ArmResult, Measures, Metric};
use std::collections::BTreeMap;

/// What a recording told.
pub enum Looked {
    /// No limit needed one.
    NotNeeded,
    /// There is one.
    Seen(Seen),
    /// This machine could not make one.
    Impossible(Vec<Unavailable>),
}

/// Judges a limit by the launches of one arm and what a recording told; without `looked` what needs a recording is not known.
pub fn judged(limit: &Limit, result: &ArmResult, times: &Times, looked: Option<&Looked>) -> Judged {
    let seen = match looked {
        Some(Looked::Seen(seen)) => Some(seen),
        _ => None,
    };
    match (limit.subject, seen) {
        (Subject::Time { .. }, _) => {
            times.judged(&limit.name).cloned().unwrap_or_else(|| Judged::unavailable("no launch was looked at"))
        }
        (Subject::Largest(metric), _) => verdict::exact(limit.budget, &result.values(metric)),
        (Subject::Processes, Some(seen)) => {
            verdict::recorded(limit.budget, seen.processes as f64, seen.processes_doubt.as_deref())
        }
        (Subject::DeniedOpens, Some(seen)) => match &seen.opens_missing {
            Some(why) => Judged::unavailable(why.clone()),
            None => verdict::recorded(limit.budget, seen.denied_opens as f64, seen.opens_doubt.as_deref()),
        },
        (Subject::ColdBytes, Some(seen)) => {
            verdict::recorded(limit.budget, seen.cold_bytes as f64, seen.insertions_doubt.as_deref())
        }
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
