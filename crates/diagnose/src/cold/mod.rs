//! A cold diagnosis: trainings in a lab, plans, the prediction, then cold launches with and without them.

mod arms;
mod prediction;
mod recorded;
mod summary;
mod training;

use crate::Case;
use crate::blocks::{self, Blocks};
use crate::printed::Diagnosis;
use crate::time_limit::{TimeLimit, Too};
use arms::PlanFile;
use prediction::{Pilot, Predicted};
use recorded::Found;
use slowpath_experiment::Level;
use slowpath_lab::{Lab, Settings};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::interrupt;
use slowpath_verify::{Arm, Comparison, ComparisonError, Metric, compare_until};
use std::time::Duration;
use training::Trained;

/// A launch that waits for storage shows it in the time to ready.
const JUDGED_BY: Metric = Metric::Wall;

/// What untreated launches showed, and what is needed to try something.
pub struct Looked {
    lab: Lab,
    trained: Trained,
    plans: Vec<PlanFile>,
    pilot: Pilot,
    predicted: Option<Predicted>,
    found: Found,
    settings: Settings,
}

/// Records launches, makes the plans, and writes down what is predicted of them.
pub fn look(case: &Case<'_>) -> Result<Looked, Failure> {
    let Case { target, directory, progress, settings, set, .. } = *case;
    let (mut lab, mut trained) = training::in_a_fitting_lab(target, settings, directory, progress)?;
    let plans = arms::plans(set, target, directory, &lab, trained.recordings, progress)?;
    let pilot = prediction::pilot(target, &mut lab, &plans, &mut trained.read, progress)?;
    let predicted = prediction::predict(target, directory, &plans, &pilot, progress)?;
    let found = recorded::found(target, directory, predicted.as_ref(), progress)?;
    Ok(Looked { lab, trained, plans, pilot, predicted, found, settings })
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
        let set = arms::choose(case.set, self.settings, &self.plans);
        let arms: Vec<Arm> = set.iter().map(|treated| treated.arm.clone()).collect();
        let block = self.pilot.pace.block(arms.len());
        let planned = match blocks::planned(case, arms.iter(), limit, block, Duration::ZERO, whole) {
            Ok(planned) => planned,
            Err(Too { long }) => return self.untried(case, &long),
        };
        let blocks = Blocks::new(case, arms.clone(), planned, JUDGED_BY, limit, whole);
        let mut launches = arms::Launches::new(case.target, &mut self.lab, &mut self.trained.read, self.settings);
        let compared = compare_until(
            arms,
            planned,
            case.seed,
            |arm, _| launches.one(&set[arm]),
            |done, total| {
                case.progress.count("comparing launches", done, total);
                !interrupt::requested()
            },
            |results, done| blocks.enough(results, done),
        )
        .map_err(given_up)?;
        if compared.stopped {
            return Err(interrupted());
        }
        let ended = blocks.ended(&compared.results, compared.blocks);
        summary::summarize(&summary::Input { ended: Some(&ended), ..self.input(case, &set, &compared) })
    }

    /// The diagnosis without a trial; `why` says why there is none.
    fn untried(&self, case: &Case<'_>, why: &str) -> Result<Diagnosis, Failure> {
        let untreated = arms::untreated();
        let input = summary::Input { untried: Some(why), ..self.input(case, &untreated, &self.pilot.launches) };
        summary::summarize(&input)
    }

    fn input<'a>(
        &'a self,
        case: &'a Case<'_>,
        arms: &'a [arms::Treated],
        comparison: &'a Comparison,
    ) -> summary::Input<'a> {
        summary::Input {
            target: case.target,
            directory: case.directory,
            arms,
            comparison,
            plans: &self.plans,
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

fn given_up(error: ComparisonError<Failure>) -> Failure {
    match error {
        ComparisonError::Stopped => interrupted(),
        ComparisonError::Launch { source, .. } => source,
        error @ ComparisonError::NeverReady { .. } => Failure::from_error(Kind::Target, &error),
    }
}

fn interrupted() -> Failure {
    Failure::new(Kind::Interrupted, "interrupted; the recordings and the plan are kept")
}
