//! A cold diagnosis: trainings in a lab, plans, the prediction, then cold launches with and without them.

mod arms;
mod prediction;
mod summary;
mod training;

use super::Case;
use super::time_limit::{TimeLimit, Too};
use crate::arguments::ArmSet;
use crate::failure::{Failure, Kind};
use crate::unprivileged::{Work, as_user};
use crate::{interrupt, lab_session};
use arms::PlanFile;
use prediction::{Pilot, Predicted};
use slowpath_lab::{Lab, Settings};
use slowpath_report::Diagnosis;
use slowpath_verify::{Comparison, ComparisonError, Role, compare};
use training::Trained;

/// What untreated launches showed, and what is needed to try something.
pub struct Looked {
    lab: Lab,
    trained: Trained,
    plans: Vec<PlanFile>,
    pilot: Pilot,
    predicted: Option<Predicted>,
    settings: Settings,
}

/// Records launches, makes the plans, and writes down what is predicted of them.
pub fn look(case: &Case<'_>, set: ArmSet) -> Result<Looked, Failure> {
    let Case { arguments, target, directory, progress } = case;
    let settings = lab_session::settings(&arguments.device);
    let (mut lab, trained) = training::in_a_fitting_lab(target, settings, directory, progress)?;
    let plans = arms::plans(set, target, directory, &lab, trained.recordings)?;
    let pilot = prediction::pilot(target, &mut lab, &plans, trained.needed, progress)?;
    let predicted = prediction::predict(target, directory, &plans, &pilot)?;
    Ok(Looked { lab, trained, plans, pilot, predicted, settings })
}

impl Looked {
    /// The diagnosis without a trial; `why` says why there is none.
    pub fn untried(&self, case: &Case<'_>, why: &str) -> Result<Diagnosis, Failure> {
        self.diagnosis(case, &arms::untreated(), &self.pilot.launches, Some(why))
    }

    /// Tries the fixes in launches that nothing was made from.
    pub fn tried(&mut self, case: &Case<'_>, set: ArmSet, limit: &TimeLimit) -> Result<Diagnosis, Failure> {
        let set = arms::choose(set, case.arguments, &self.plans);
        let judged = set.iter().filter(|treated| !matches!(treated.arm.role, Role::Baseline | Role::Warm)).count();
        let blocks = match limit.blocks(case.arguments.runs, judged, self.pilot.pace * set.len() as u32) {
            Ok(blocks) => blocks,
            Err(Too { long }) => return self.untried(case, &long),
        };
        let compared = self.compare(case, &set, blocks)?;
        self.diagnosis(case, &set, &compared, None)
    }

    fn compare(&mut self, case: &Case<'_>, set: &[arms::Treated], blocks: usize) -> Result<Comparison, Failure> {
        let (needed, settings) = (self.trained.needed, self.settings);
        let mut launches = arms::Launches { target: case.target, lab: &mut self.lab, needed, settings };
        compare(
            set.iter().map(|treated| treated.arm.clone()).collect(),
            blocks,
            case.arguments.seed,
            |arm, _| launches.one(&set[arm]),
            |done, total| {
                case.progress.count("comparing launches", done, total);
                !interrupt::requested()
            },
        )
        .map_err(|error| match error {
            ComparisonError::Stopped => {
                Failure::new(Kind::Interrupted, "interrupted; the recordings and the plan are kept")
            }
            ComparisonError::Launch { source, .. } => source,
            error @ ComparisonError::NeverReady { .. } => Failure::from_error(Kind::Target, &error),
        })
    }

    fn diagnosis(
        &self,
        case: &Case<'_>,
        set: &[arms::Treated],
        compared: &Comparison,
        untried: Option<&str>,
    ) -> Result<Diagnosis, Failure> {
        case.progress.step("explaining the cold launch");
        let conditions = self.lab.options_in_force();
        let what = Work::writing_beneath("explaining the cold launch", case.directory);
        as_user(&case.target.identity, &what, || {
            summary::summarize(&summary::Input {
                target: case.target,
                directory: case.directory,
                arms: set,
                comparison: compared,
                trained: &self.trained,
                predicted: &self.predicted,
                settings: &self.settings,
                conditions,
                untried,
            })
        })
    }
}

/// Whether a fix of a diagnosis of cold launches answers one of its findings.
pub fn answers(diagnosis: &Diagnosis) -> bool {
    diagnosis.findings.iter().any(|finding| finding.fixes.iter().any(|fix| fix == arms::FIX))
}
