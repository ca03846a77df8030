//! One diagnosis: record, find, fix, predict, try, judge.
//!
//! The order matters for honesty: what is recorded first, then the fixes, then the prediction, which is written down before the
//! first treated launch; the launches that judge a fix are others than those that it was made from.
//!
//! `cold` diagnoses launches from storage, in a lab; `warm` what launches with everything in memory pay, without one; `both` looks at
//! both and tries first what costs more; [`running`] records what runs already, and tries nothing. They share how many blocks there is
//! time for ([`TimeLimit`]), when these end, what is observed and how it is summed up.
//!
//! Artifacts that launches cannot use are found without a launch too ([`artifact_audit`]), and made so for one ([`aged_artifacts`]).
//!
//! What was proved can be kept: [`kept`] shows, applies and takes back.
//!
//! Leaves to others: recording (`session`), what recordings mean (`analysis`), plans (`fix`), the arms of their treatments,
//! launches in blocks and their verdicts (`verify`), screens and pages (`report`), arguments and the exit code (the command).

pub mod aged_artifacts;
mod arm_summary;
pub mod artifact_audit;
mod artifact_directories;
mod blocks;
mod both;
mod case;
pub mod child_starts;
mod cold;
mod denied_files;
pub mod directory;
mod file_trial;
mod hidden_by_root;
mod interruption;
pub mod kept;
mod observed;
pub mod plan_files;
pub mod printed;
pub mod recorded_artifacts;
pub mod recording_sets;
pub mod running;
pub mod running_artifacts;
mod time_limit;
mod treated_file;
mod warm;

pub use case::{ArmSet, Case};
pub use hidden_by_root::used_artifacts;
pub use time_limit::TimeLimit;

use crate::printed::Diagnosis;
use slowpath_analysis::printed::looked_for;
use slowpath_experiment::Level;
use slowpath_session::failure::Failure;
use slowpath_tables::missing::declared;

/// Which launches are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launches {
    /// From storage.
    Cold,
    /// With everything in memory.
    Warm,
    /// Both, where there is a lab and the time for it.
    Both,
}

/// Diagnoses launches.
///
/// # Errors
/// The target failed, this machine cannot do it, or the user ended it; what was recorded until then is kept.
pub fn diagnose(case: &Case<'_>, launches: Launches, limit: &TimeLimit) -> Result<Diagnosis, Failure> {
    let mut diagnosis = match launches {
        Launches::Warm => warm::look(case)?.tried(case, limit, Level::P95)?,
        Launches::Cold => cold::look(case)?.tried(case, limit, Level::P95)?,
        Launches::Both => both::run(case, limit)?,
    };
    if diagnosis.findings.is_empty() {
        diagnosis.notes.push(looked_for::list(&diagnosis.looked_for));
    }
    // Nothing of it, nor ctrl-C meanwhile, takes away what was measured.
    match hidden_by_root::look(case) {
        Ok(found) => {
            let (hidden, gaps) = found.unzip();
            diagnosis.hidden_by_root = hidden;
            diagnosis.unavailable.extend(gaps.unwrap_or_default());
        }
        Err(failure) => {
            let remedy = "`slowpath artifacts audit --recording DIR`, or `slowpath diagnose --user NAME`";
            diagnosis.unavailable.push(declared::HIDDEN_BY_ROOT.because(failure.chain(), remedy));
        }
    }
    Ok(diagnosis)
}
