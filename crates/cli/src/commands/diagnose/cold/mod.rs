//! A cold diagnosis: trainings in a lab, plans, the prediction, then cold launches with and without them.

mod arms;
mod prediction;
mod summary;
mod training;

use crate::arguments::DiagnoseArguments;
use crate::failure::{Failure, Kind};
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use crate::{interrupt, lab_session, output_directory, recorded_launch};
use slowpath_verify::{ComparisonError, compare};
use std::process::ExitCode;

/// Runs it.
pub fn run(arguments: &DiagnoseArguments) -> Result<ExitCode, Failure> {
    recorded_launch::require("diagnose", true)?;
    interrupt::watch();
    let target = super::target(arguments)?;
    let directory = output_directory::prepare(&arguments.output, &target.identity)?;
    let progress = Progress::new(arguments.quiet);
    let settings = lab_session::settings(&arguments.device);

    let (mut lab, trained) = training::in_a_fitting_lab(&target, settings, &directory, &progress)?;
    let plans = arms::plans(arguments.arms, &target, &directory, &lab, trained.recordings)?;
    let pilot = prediction::pilot(&target, &mut lab, &plans, trained.needed, &progress)?;
    let predicted = prediction::predict(&target, &directory, &plans, &pilot)?;

    let set = arms::choose(arguments, &plans);
    let mut launches = arms::Launches { target: &target, lab: &mut lab, needed: trained.needed, settings };
    let compared = compare(
        set.iter().map(|treated| treated.arm.clone()).collect(),
        arguments.runs as usize,
        arguments.seed,
        |arm, _| launches.one(&set[arm]),
        |done, total| {
            progress.count("comparing launches", done, total);
            !interrupt::requested()
        },
    )
    .map_err(|error| match error {
        ComparisonError::Stopped => {
            Failure::new(Kind::Interrupted, "interrupted; the recordings and the plan are kept")
        }
        ComparisonError::Launch { source, .. } => source,
        error @ ComparisonError::NeverReady { .. } => Failure::from_error(Kind::Target, &error),
    })?;
    progress.step("writing the report");
    let conditions = lab.options_in_force();
    let what = Work::writing_beneath("writing the report", &directory);
    let diagnosis = as_user(&target.identity, &what, || {
        let diagnosis = summary::summarize(&summary::Input {
            target: &target,
            directory: &directory,
            arms: &set,
            comparison: &compared,
            trained: &trained,
            predicted: &predicted,
            settings: &settings,
            conditions,
        })?;
        super::save(&directory, &diagnosis)?;
        Ok(diagnosis)
    })?;
    progress.done();
    super::show(arguments, &directory, &diagnosis);
    Ok(ExitCode::SUCCESS)
}
