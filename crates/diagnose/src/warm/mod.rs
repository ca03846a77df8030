//! A warm diagnosis: one recorded launch, what it hides, the fixes that change a launch, and warm launches with and without them.
//!
//! No lab is made, and nothing outside the launches is changed. Findings lead to fixes by name, fixes to arms by what they set:
//! nothing here knows of a particular finding or fix.

mod arms;
mod python_preload;
mod recorded;
mod regenerated;
mod summary;

use crate::Case;
use crate::blocks::{self, Blocks, Ended};
use crate::printed::Diagnosis;
use crate::time_limit::{TimeLimit, Too};
use arms::WarmArm;
use recorded::Found;
use slowpath_experiment::Level;
use slowpath_session::Progress;
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::interrupt;
use slowpath_verify::benchmark::{Launched, Launches};
use slowpath_verify::conditions::Conditions;
use slowpath_verify::{Comparison, Role, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// What a recorded launch showed.
pub struct Looked {
    found: Found,
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
        let made = regenerated::regenerate(case.target, &self.found.proposals, case.progress)?;
        let imports = python_preload::write(case, &self.found.proposals)?;
        let arms = arms::choose(case.target, &self.found.proposals, &made, &imports);
        let seed = case.seed;
        let (mut late, mut compared) = (None, None);
        let (mut able_arms, mut failing) = (Vec::new(), BTreeMap::new());
        if !arms.is_empty() {
            let block = self.pace * arms.len() as u32;
            // Each arm is warmed up before.
            match blocks::planned(case, arms.iter().map(|one| &one.arm), limit, block, block, whole) {
                Err(Too { long }) => late = Some(long),
                Ok(planned) => {
                    (able_arms, failing) = able(arms, &mut conditions, seed, case.progress)?;
                    compared = compare(&able_arms, &mut conditions, planned, case, limit, whole)?;
                }
            }
        }
        failing.extend(made.iter().filter_map(|(number, made)| Some((*number, made.as_ref().err()?.clone()))));
        failing.extend(imports.iter().filter_map(|(number, one)| Some((*number, one.as_ref().err()?.clone()))));
        case.progress.step("explaining the warm launch");
        summary::summarize(&summary::Input {
            target: case.target,
            directory: case.directory,
            arms: &able_arms,
            failing: &failing,
            compared: compared.as_ref(),
            found: &self.found,
            seed,
            conditions: conditions.words(),
            late: late.as_deref(),
        })
    }
}

fn interrupted() -> Failure {
    Failure::new(Kind::Interrupted, "interrupted; the recording is kept")
}

fn launched(arms: &[WarmArm]) -> Vec<Launched<'_>> {
    let one = arms.iter().map(|one| Launched { arm: one.arm.clone(), target: &one.target, padding: one.padding });
    one.collect()
}

/// The arms that get ready in their first launch, which warms them up and does not count; and the fixes with which the program
/// fails, by the place of their proposal, with the reason.
fn able(
    mut arms: Vec<WarmArm>,
    conditions: &mut Conditions,
    seed: u64,
    progress: &dyn Progress,
) -> Result<(Vec<WarmArm>, BTreeMap<usize, String>), Failure> {
    let mut failing = BTreeMap::new();
    let mut are_able = vec![true; arms.len()];
    let mut launches = Launches::new(launched(&arms), conditions, seed);
    for (number, arm) in arms.iter().enumerate() {
        progress.step(&format!("warming up: {}", arm.arm.name));
        let launched = match launches.one(number, 0) {
            // Mounts that this machine refuses are a fix that cannot be tried, and no failure of the others.
            Err(failure) if arm.target.has_mounts() && failure.kind() == Kind::Machine && !interrupt::requested() => {
                are_able[number] = false;
                if let Some(proposal) = arm.proposal {
                    failing.insert(proposal, format!("it cannot be tried here: {}", failure.chain()));
                }
                continue;
            }
            launched => launched?,
        };
        match launched {
            Sample::Stopped => return Err(interrupted()),
            Sample::Failed(reason) => match (arm.arm.role, arm.proposal) {
                (Role::Fix, Some(proposal)) => {
                    are_able[number] = false;
                    failing.insert(proposal, format!("the program fails with it: {reason}"));
                }
                _ => {
                    let name = &arm.arm.name;
                    return Err(Failure::new(Kind::Target, format!("{name} failed in its first launch: {reason}")));
                }
            },
            Sample::Measured(_) | Sample::Discarded(_) => {}
        }
    }
    drop(launches);
    let mut are_able = are_able.into_iter();
    arms.retain(|_| are_able.next().unwrap_or(true));
    // Without its sham a fix of files is not judged, and without a fix no sham is launched.
    let shams: BTreeSet<String> =
        arms.iter().filter(|arm| arm.arm.role == Role::Sham).map(|arm| arm.arm.name.clone()).collect();
    let has_sham = |arm: &WarmArm| arm.arm.sham.as_ref().is_some_and(|sham| shams.contains(sham));
    arms.retain(|arm| arm.arm.role != Role::Fix || !arm.target.has_mounts() || has_sham(arm));
    let named: BTreeSet<String> = arms.iter().filter_map(|arm| arm.arm.sham.clone()).collect();
    arms.retain(|arm| arm.arm.role != Role::Sham || named.contains(&arm.arm.name));
    if !arms.iter().any(|arm| arm.arm.role == Role::Fix) {
        arms.clear();
    }
    Ok((arms, failing))
}

/// Runs the blocks, as long as there is time; nothing where no fix can be tried.
fn compare(
    arms: &[WarmArm],
    conditions: &mut Conditions,
    planned: usize,
    case: &Case<'_>,
    limit: &TimeLimit,
    whole: Level,
) -> Result<Option<(Comparison, Ended)>, Failure> {
    if arms.is_empty() {
        return Ok(None);
    }
    let judged = arms.iter().map(|one| one.arm.clone()).collect();
    let blocks = Blocks::new(case, judged, planned, summary::JUDGED_BY, limit, whole);
    let launches = Launches::new(launched(arms), conditions, case.seed);
    let compared = launches.compare(planned, case.progress, |results, done| blocks.enough(results, done));
    match compared {
        Ok(compared) if compared.stopped => Err(interrupted()),
        Ok(compared) => {
            let ended = blocks.ended(&compared.results, compared.blocks);
            Ok(Some((compared, ended)))
        }
        Err(failure) if failure.is_interruption() => Err(interrupted()),
        Err(failure) => Err(failure),
    }
}
