//! `slowpath diagnose`: record, find, fix, prove.
//!
//! The order matters for honesty: trainings first, then the plan, then the prediction, which is written down before
//! the first treated launch; the launches that judge the plan are others than those that made it.

mod arms;
mod prediction;
mod summary;
mod training;

use crate::arguments::DiagnoseArguments;
use crate::commands::report::{self, COLD, DIAGNOSIS_FILE, NEEDED};
use crate::commands::{analyze, print_json};
use crate::failure::{Failure, Kind, failed};
use crate::progress::Progress;
use crate::target::Target;
use crate::unprivileged::as_user;
use crate::{interrupt, lab_session, output_directory, recorded_launch};
use slowpath_report::Diagnosis;
use slowpath_report::terminal::{self, Style};
use slowpath_verify::{ComparisonError, compare};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// A launch that takes longer than this is given up, unless `--timeout` says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the command.
pub fn run(arguments: &DiagnoseArguments) -> Result<ExitCode, Failure> {
    recorded_launch::require("diagnose", true)?;
    interrupt::watch();
    let target = Target::new(&arguments.target, Some(PATIENCE))?;
    for warning in &target.warnings {
        eprintln!("slowpath: warning: {warning}");
    }
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
    let diagnosis = as_user(&target.identity, || {
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
        save(&directory, &diagnosis)?;
        Ok(diagnosis)
    })?;
    progress.done();
    if arguments.json {
        print_json(&diagnosis);
    } else {
        print!("{}", terminal::diagnosis(&diagnosis, &Style::detect(std::io::stdout().is_terminal())));
        println!("report: {}", terminal::escape_terminal(&page(&directory).to_string_lossy()));
    }
    Ok(ExitCode::SUCCESS)
}

fn page(directory: &Path) -> PathBuf {
    directory.join("report.html")
}

fn save(directory: &Path, diagnosis: &Diagnosis) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(diagnosis).map_err(failed(Kind::Machine))?;
    std::fs::write(directory.join(DIAGNOSIS_FILE), text).map_err(failed(Kind::Machine))?;
    let cold = directory.join(COLD);
    let needed = analyze::open(&directory.join(NEEDED))?;
    let data = report::data(&analyze::open(&cold)?, Some(&needed), Some(diagnosis.clone()), &cold);
    report::write_page(&data, &page(directory))
}
