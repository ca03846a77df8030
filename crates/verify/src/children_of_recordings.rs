//! The child launches of recordings, read back: which of them hold when a child was ready.

use crate::children::{ChildLaunches, of_runs};
use slowpath_analysis::starts::children::child_launches;
use slowpath_recording::{Manifest, NotRecorded};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::open_recording;
use slowpath_tables::missing::declared;
use slowpath_tables::{Losses, Unavailable};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The probe that sees when a child is ready.
const PROBE: &str = "first_wait";

/// The child launches of all recordings in which they can be seen; those in which they cannot are listed as unavailable. `warn` is
/// called with what a user must know of a recording. To be called as the user whose recordings they are.
///
/// # Errors
/// A directory is no recording, or is named twice; none of them has the moments of readiness.
pub fn of_recordings(directories: &[PathBuf], warn: impl Fn(&str)) -> Result<ChildLaunches, Failure> {
    let mut known = BTreeSet::new();
    let (mut runs, mut names, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut losses, mut unavailable) = (Losses::default(), Vec::new());
    for directory in directories {
        let shown = directory.to_string_lossy().into_owned();
        // One launch that counts twice would make every interval too narrow.
        if !known.insert(directory.canonicalize().unwrap_or_else(|_| directory.clone())) {
            return Err(Failure::new(Kind::Usage, format!("{shown} is given twice"))
                .hint("every recording is one run and counts once"));
        }
        let tables = open_recording::open(directory, |text| warn(text))?;
        if let Some(missing) = readiness_missing(directory, &tables.manifest) {
            unavailable.push(missing);
            continue;
        }
        if tables.manifest.ended.is_none() {
            notes.push(format!("{shown}: the recording has not ended in order: later children may be missing"));
        }
        losses.merge(&tables.manifest.losses);
        unavailable.extend(tables.manifest.unavailable.iter().cloned());
        runs.push(child_launches(&tables));
        names.push(shown);
    }
    if let ([], Some(missing)) = (runs.as_slice(), unavailable.first()) {
        return Err(Failure::new(Kind::Usage, format!("{} is unavailable: {}", missing.what, missing.reason))
            .hint(missing.remedy.clone()));
    }
    let mut seen = BTreeSet::new();
    unavailable.retain(|one| seen.insert(one.clone()));
    Ok(ChildLaunches { recordings: names, notes, losses, unavailable, ..of_runs(&runs) })
}

/// Why a recording does not hold when its children were ready; `None` when it does.
fn readiness_missing(directory: &Path, manifest: &Manifest) -> Option<Unavailable> {
    let gap = |reason: String, remedy: &str| declared::READINESS.of(&[&directory.display()], reason, remedy);
    match manifest.not_recorded(PROBE) {
        None => None,
        Some(NotRecorded::Refused(known)) => {
            let reason = known.map_or("the kernel refused it", |one| one.reason.as_str());
            let remedy = known.map_or("`slowpath doctor` says what is missing", |one| one.remedy.as_str());
            Some(gap(format!("the probe {PROBE} did not run: {reason}"), remedy))
        }
        Some(NotRecorded::NotAskedFor) => Some(gap(
            "it was recorded without --child-startup".to_owned(),
            "record it again: `slowpath record --child-startup -o DIR -- CMD`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::{Probe, ProbeState};

    #[test]
    fn a_probe_that_did_not_run_is_reported_with_the_recorders_reason() {
        let with = |probes: Vec<Probe>, unavailable| Manifest { probes, unavailable, ..Manifest::default() };
        let probe = |state| vec![Probe { name: PROBE.to_owned(), state }];
        let missing = |manifest: &Manifest| readiness_missing(Path::new("r"), manifest);
        assert_eq!(missing(&with(probe(ProbeState::Attached), Vec::new())), None);
        let not_asked = missing(&with(Vec::new(), Vec::new())).unwrap();
        assert!(not_asked.remedy.contains("record --child-startup"), "{not_asked:?}");
        let gap = Unavailable {
            what: "probe first_wait".to_owned(),
            reason: "no sched_switch".to_owned(),
            remedy: "a newer kernel".to_owned(),
        };
        let refused = missing(&with(probe(ProbeState::Unavailable), vec![gap])).unwrap();
        assert_eq!(refused.reason, "the probe first_wait did not run: no sched_switch");
        assert_eq!(refused.remedy, "a newer kernel");
        assert!(missing(&with(probe(ProbeState::Unavailable), Vec::new())).is_some());
    }
}
