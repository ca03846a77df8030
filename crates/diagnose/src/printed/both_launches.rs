//! One diagnosis of cold and of warm launches, and each half of it.
//!
//! Owns which half leads: the one whose most costly finding costs more. Findings, fixes, verdicts, losses and gaps of both stand
//! together; a verdict belongs to the half whose metric judged it.

use super::diagnosis::{Diagnosis, OtherLaunches};
use serde_json::Value;
use slowpath_analysis::Evidence;
use slowpath_analysis::finding::Finding;
use slowpath_analysis::findings::memory_evidence::short;

impl Diagnosis {
    /// The diagnosis of both. `cold` and `warm` are of one command.
    pub fn of_both(cold: Self, warm: Self) -> Self {
        let leads = if worst(&warm) > worst(&cold) { (warm, cold) } else { (cold, warm) };
        let (mut first, mut second) = leads;
        name_functions(&mut first.findings, &second);
        // What both show is reported of the launches that lose more.
        let shown: Vec<_> = first.findings.iter().map(about).collect();
        let both_show: Vec<_> = second.findings.iter().map(about).filter(|one| shown.contains(one)).collect();
        second.findings.retain(|finding| !shown.contains(&about(finding)));
        let of_first = first.findings.into_iter().map(|finding| (finding, false));
        let mut all: Vec<_> = of_first.chain(second.findings.into_iter().map(|finding| (finding, true))).collect();
        all.sort_by(|(a, _), (b, _)| b.cost.value.total_cmp(&a.cost.value));
        let places = |is_meant: &dyn Fn(&(Finding, bool)) -> bool| -> Vec<u32> {
            (0..).zip(&all).filter(|(_, one)| is_meant(one)).map(|(place, _)| place).collect()
        };
        let own_findings = places(&|(_, is_own)| *is_own);
        let shared_findings = places(&|(finding, is_own)| !is_own && both_show.contains(&about(finding)));
        first.findings = all.into_iter().map(|(finding, _)| finding).collect();
        first.time.extend(second.time);
        first.looked_for.extend(second.looked_for);
        first.round_trips.extend(second.round_trips);
        first.fixes.extend(second.fixes);
        first.verdicts.extend(second.verdicts);
        first.losses.merge(&second.losses);
        for gap in second.unavailable {
            if !first.unavailable.contains(&gap) {
                first.unavailable.push(gap);
            }
        }
        first.notes.extend(second.notes);
        first.other = Some(OtherLaunches {
            warm: second.warm,
            recording: second.recording,
            launch: second.launch,
            found: u32::try_from(own_findings.len()).unwrap_or(u32::MAX),
            own_findings,
            shared_findings,
            share_of_gap_removed: second.share_of_gap_removed,
        });
        first
    }

    /// The half that leads, with the findings and fixes of both; the whole where there is only one.
    pub fn leading(&self) -> Self {
        let mut half = Self { other: None, ..self.clone() };
        if self.other.is_some() {
            let judged_by = half.launch.judged_by;
            half.verdicts.retain(|verdict| verdict.judged_by.unwrap_or(judged_by) == judged_by);
        }
        half
    }

    /// The other half with its own findings, without gaps and notes, which stand in the first; `None` where there is only one half.
    pub fn following(&self) -> Option<Self> {
        let other = self.other.clone()?;
        let judged_by = other.launch.judged_by;
        // An earlier version did not write which findings are whose.
        let is_unknown = other.own_findings.is_empty() && other.found > 0;
        let is_own = |place: u32| is_unknown || other.own_findings.contains(&place);
        let findings = (0..).zip(&self.findings).filter(|(place, _)| is_own(*place));
        let findings: Vec<Finding> = findings.map(|(_, finding)| finding.clone()).collect();
        let verdicts = self.verdicts.iter().filter(|verdict| verdict.judged_by == Some(judged_by));
        Some(Self {
            warm: other.warm,
            recording: other.recording,
            launch: other.launch,
            other: None,
            findings,
            shared_findings: other.shared_findings.len(),
            verdicts: verdicts.cloned().collect(),
            share_of_gap_removed: other.share_of_gap_removed,
            unavailable: Vec::new(),
            notes: Vec::new(),
            ..self.clone()
        })
    }
}

/// What a finding is about, in both halves alike: without process ids, and without a function, which only one may know.
fn about(finding: &Finding) -> (String, [Option<Value>; 2]) {
    (finding.name.clone(), ["process", "server"].map(|key| finding.subject.get(key).cloned()))
}

/// Says of a finding in which function it is, where only the other half knows: stacks of waits are recorded in warm launches alone. Its
/// cost, its process and its confidence stay those of the launches that it was found in. Not where several findings are about the same.
fn name_functions(findings: &mut [Finding], other: &Diagnosis) {
    let subjects: Vec<_> = findings.iter().map(about).collect();
    for finding in findings.iter_mut().filter(|finding| !finding.subject.contains_key(FUNCTION)) {
        let subject = about(finding);
        let mut same = other.findings.iter().filter(|other| about(other) == subject);
        let (Some(same), None) = (same.next(), same.next()) else { continue };
        let is_only = subjects.iter().filter(|one| **one == subject).count() == 1;
        let Some(function) = same.subject.get(FUNCTION).filter(|_| is_only) else { continue };
        let launches = if other.warm { "warm" } else { "cold" };
        if let Some(name) = function.as_str() {
            let title = finding.title.trim_end_matches('.');
            finding.title = format!("{title} in {} (as {launches} launches show)", short(name));
        }
        finding.subject.insert(FUNCTION.to_owned(), function.clone());
        finding
            .reasons
            .push(format!("the function, and the evidence that names it, are of a recorded {launches} launch"));
        let placed = same.evidence.iter().filter(|one| one.rows.iter().any(|row| row.contains_key(FUNCTION)));
        finding.evidence.extend(
            placed.cloned().map(|one| Evidence { text: format!("In {launches} launches: {}", one.text), ..one }),
        );
    }
}

const FUNCTION: &str = "function";

/// What the most costly finding costs.
fn worst(diagnosis: &Diagnosis) -> f64 {
    diagnosis.findings.iter().map(|finding| finding.cost.value).fold(0.0, f64::max)
}
