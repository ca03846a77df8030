//! One diagnosis of cold and of warm launches, and each half of it.
//!
//! Owns which half leads: the one whose most costly finding costs more. Findings, fixes, verdicts, losses and gaps of both stand
//! together; a verdict belongs to the half whose metric judged it.

use super::diagnosis::{Diagnosis, OtherLaunches};
use slowpath_analysis::finding::Finding;

impl Diagnosis {
    /// The diagnosis of both. `cold` and `warm` are of one command.
    pub fn of_both(cold: Self, warm: Self) -> Self {
        let leads = if worst(&warm) > worst(&cold) { (warm, cold) } else { (cold, warm) };
        let (mut first, mut second) = leads;
        // What both show is reported of the launches that lose more, unless only the others say in which function it is: stacks of waits are
        // recorded in warm launches alone.
        let about = |finding: &Finding| (finding.name.clone(), finding.subject.get("process").cloned());
        for finding in first.findings.iter_mut().filter(|finding| !is_placed(finding)) {
            let same = second.findings.iter().find(|other| is_placed(other) && about(other) == about(finding));
            if let Some(same) = same {
                finding.clone_from(same);
            }
        }
        let told: Vec<_> = first.findings.iter().map(about).collect();
        let both_show: Vec<_> = second.findings.iter().map(about).filter(|one| told.contains(one)).collect();
        second.findings.retain(|finding| !told.contains(&about(finding)));
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

/// Whether it names a function.
fn is_placed(finding: &Finding) -> bool {
    finding.subject.contains_key("function")
}

/// What the most costly finding costs.
fn worst(diagnosis: &Diagnosis) -> f64 {
    diagnosis.findings.iter().map(|finding| finding.cost.value).fold(0.0, f64::max)
}
