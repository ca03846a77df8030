//! A cold diagnosis: trainings in a lab, plans, the prediction, then cold launches with and without them.

mod plans;
mod prediction;
mod recorded;
mod summary;
mod training;

use crate::blocks::{self, Blocks};
use crate::case::Case;
use crate::interruption;
use crate::printed::Diagnosis;
use crate::time_limit::{TimeLimit, Too};
use plans::Candidate;
use prediction::{Pilot, Predicted};
use recorded::ShownByRecordings;
use slowpath_experiment::Level;
use slowpath_lab::{Lab, Settings};
use slowpath_session::failure::{Failure, Kind};
use slowpath_verify::treated::Tried;
use slowpath_verify::treated::cold::{self as treated, ColdArm, ColdLaunches, ShamPlan};
use slowpath_verify::{Arm, Comparison};
use std::time::Duration;
use training::Trained;

/// What untreated launches showed, and what is needed to try something.
pub struct Looked {
    lab: Lab,
    trained: Trained,
    candidates: Vec<Candidate>,
    shams: Vec<ShamPlan>,
    pilot: Pilot,
    predicted: Option<Predicted>,
    found: ShownByRecordings,
    settings: Settings,
}

/// Records launches, makes the plans, and writes down what is predicted of them.
pub fn look(case: &Case<'_>) -> Result<Looked, Failure> {
    let Case { target, directory, progress, settings, set, .. } = *case;
    let (mut lab, mut trained) = training::in_a_fitting_lab(target, settings, directory, progress)?;
    let plans = plans::plans(set, target, directory, trained.recordings, progress)?;
    let fix = plans.fix().ok_or_else(|| Failure::new(Kind::Machine, "no plan"))?;
    let shams = ShamPlan::write_all(target, directory, &lab, fix.bytes, &plans.provenance)?.into();
    let pilot = prediction::pilot(case, &mut lab, fix, &mut trained.read)?;
    let predicted = prediction::predict(target, directory, fix, &pilot, progress)?;
    let found = recorded::found(target, directory, predicted.as_ref(), progress)?;
    let candidates = plans.candidates(set, settings);
    Ok(Looked { lab, trained, candidates, shams, pilot, predicted, found, settings })
}

impl Looked {
    /// What its most costly finding costs, in ms.
    pub fn worst(&self) -> f64 {
        self.found.findings.iter().map(|finding| finding.cost.value).fold(0.0, f64::max)
    }

    /// Whether a finding asks for a fix, so that there is something to try.
    pub fn asks_for_a_trial(&self) -> bool {
        self.found.asks_for_a_fix()
    }

    /// Tries the fixes where a finding asks for one. `whole`: as [`Self::tried`].
    pub fn tried_if_asked_for(
        &mut self,
        case: &Case<'_>,
        limit: &TimeLimit,
        whole: Level,
    ) -> Result<Diagnosis, Failure> {
        match self.asks_for_a_trial() {
            true => self.tried(case, limit, whole),
            false => self.untried(case, "no finding asks for it"),
        }
    }

    /// Tries the fixes in launches that nothing was made from. All intervals together hold with the level `whole`.
    pub fn tried(&mut self, case: &Case<'_>, limit: &TimeLimit, whole: Level) -> Result<Diagnosis, Failure> {
        let tried: Vec<Tried> = self.candidates.iter().map(|candidate| candidate.tried.clone()).collect();
        let treated = treated::arms(&tried, &self.shams, self.settings);
        let arms: Vec<Arm> = treated.iter().map(|one| one.arm.clone()).collect();
        let block = self.pilot.pace.block(arms.len());
        let planned = match blocks::planned(case, arms.iter(), limit, block, Duration::ZERO, whole) {
            Ok(planned) => planned,
            Err(Too { long }) => return self.untried(case, &long),
        };
        let blocks = Blocks::new(case, arms, planned, summary::JUDGED_BY, limit, whole);
        let read = &mut self.trained.read;
        let launches = ColdLaunches::new(case.target, &mut self.lab, case.directory, read.at_least, &mut read.pages);
        let compared = launches
            .compare(&treated, planned, case.seed, case.progress, |results, done| blocks.next(results, done))
            .map_err(|failure| if failure.is_interruption() { interruption::of_cold() } else { failure })?;
        if compared.stopped {
            return Err(interruption::of_cold());
        }
        let ended = blocks.ended(&compared.results, compared.blocks);
        summary::summarize(&summary::Input { ended: Some(&ended), ..self.input(case, &treated, &compared) })
    }

    /// The diagnosis without a trial; `why` says why there is none.
    fn untried(&self, case: &Case<'_>, why: &str) -> Result<Diagnosis, Failure> {
        let untreated = treated::untreated();
        let input = summary::Input { untried: Some(why), ..self.input(case, &untreated, &self.pilot.launches) };
        summary::summarize(&input)
    }

    fn input<'a>(&'a self, case: &'a Case<'_>, arms: &'a [ColdArm], comparison: &'a Comparison) -> summary::Input<'a> {
        summary::Input {
            target: case.target,
            directory: case.directory,
            arms,
            comparison,
            candidates: &self.candidates,
            shams: &self.shams,
            trained: &self.trained,
            found: &self.found,
            predicted: self.predicted.as_ref(),
            settings: &self.settings,
            conditions: self.lab.options_in_force(),
            untried: None,
            ended: None,
        }
    }
}
