//! A warm diagnosis: one recorded launch, what it hides, the fixes that change a launch, and warm launches with and without them.
//!
//! Owns which fixes are tried, what is predicted of them, how many blocks there is time for, and what is published. No lab is made, and
//! nothing outside the launches is changed. Findings lead to fixes by name, and `verify` makes arms and shams of their treatments: nothing
//! here knows of a particular finding or fix.

mod recorded;
mod summary;

use crate::blocks::{self, Blocks, Ended};
use crate::case::Case;
use crate::interruption;
use crate::printed::Diagnosis;
use crate::time_limit::{TimeLimit, Too};
use recorded::ShownByRecording;
use slowpath_experiment::Level;
use slowpath_session::failure::Failure;
use slowpath_verify::conditions::Conditions;
use slowpath_verify::treated::Tried;
use slowpath_verify::treated::warm::WarmTrial;
use slowpath_verify::{ArmResult, Comparison};
use std::time::{Duration, Instant};

/// What a recorded launch showed.
pub struct Looked {
    found: ShownByRecording,
    /// How long the launch before it took, with all that is around it.
    pub pace: Duration,
}

/// Records a launch and makes the fixes for what it hides.
pub fn look(case: &Case<'_>) -> Result<Looked, Failure> {
    let began = Instant::now();
    let unrecorded = recorded::warm_up(case.target, case.progress)?;
    let pace = began.elapsed();
    recorded::record(case.target, case.directory, case.progress)?;
    let found = recorded::found(case.target, case.directory, unrecorded, case.progress)?;
    Ok(Looked { found, pace })
}

impl Looked {
    /// What its most costly finding costs, in ms.
    pub fn worst(&self) -> f64 {
        self.found.findings.iter().map(|finding| finding.cost.value).fold(0.0, f64::max)
    }

    /// Cold launches are diagnosed too: what they are needed for is tried there.
    pub fn beside_cold(mut self) -> Self {
        self.found.need_lab.clear();
        self
    }

    /// Whether there may be something to try: what cannot be made, or fails, is seen later.
    pub fn asks_for_a_trial(&self) -> bool {
        self.found.proposals.iter().any(|proposal| proposal.plan.trial.possible)
    }

    /// Tries the fixes in launches that nothing was made from. All intervals together hold with the level `whole`.
    pub fn tried(&self, case: &Case<'_>, limit: &TimeLimit, whole: Level) -> Result<Diagnosis, Failure> {
        let mut conditions = Conditions::Warm;
        let tried: Vec<Tried> = self.found.proposals.iter().map(|proposal| Tried::fix(&proposal.plan)).collect();
        let mut trial = WarmTrial::prepare(case.target, &tried, case.directory, case.progress).map_err(kept)?;
        let (mut late, mut compared) = (None, None);
        if !trial.arms.is_empty() {
            let block = self.pace * trial.arms.len() as u32;
            // Each arm is warmed up before.
            match blocks::planned(case, trial.arms.iter().map(|one| &one.arm), limit, block, block, whole) {
                Err(Too { long }) => {
                    trial.arms.clear();
                    late = Some(long);
                }
                Ok(planned) => {
                    trial.warm_up(&mut conditions, case.seed, case.progress).map_err(kept)?;
                    compared = compare(&trial, &mut conditions, planned, case, limit, whole)?;
                }
            }
        }
        case.progress.step("explaining the warm launch");
        summary::summarize(&summary::Input {
            target: case.target,
            directory: case.directory,
            trial: &trial,
            compared: compared.as_ref(),
            found: &self.found,
            seed: case.seed,
            conditions: conditions.words(),
            late: late.as_deref(),
        })
    }
}

/// The failure of a trial; where the user ended it, with what there is nevertheless.
fn kept(failure: Failure) -> Failure {
    if failure.is_interruption() { interruption::of_warm() } else { failure }
}

/// Runs the blocks, as long as there is time; nothing where no fix can be tried.
fn compare(
    trial: &WarmTrial,
    conditions: &mut Conditions,
    planned: usize,
    case: &Case<'_>,
    limit: &TimeLimit,
    whole: Level,
) -> Result<Option<(Comparison, Ended)>, Failure> {
    if trial.arms.is_empty() {
        return Ok(None);
    }
    let judged = trial.arms.iter().map(|one| one.arm.clone()).collect();
    let blocks = Blocks::new(case, judged, planned, summary::JUDGED_BY, limit, whole);
    let next = |results: &[ArmResult], done| blocks.next(results, done);
    let compared = trial.compare(conditions, planned, case.seed, case.progress, next).map_err(kept)?;
    if compared.stopped {
        return Err(interruption::of_warm());
    }
    let ended = blocks.ended(&compared.results, compared.blocks);
    Ok(Some((compared, ended)))
}
