//! `slowpath diagnose`: record, find, fix, prove.
//!
//! The order matters for honesty: what is recorded first, then the fixes, then the prediction, which is written down before the
//! first treated launch; the launches that judge a fix are others than those that it was made from.
//!
//! [`cold`] diagnoses launches from storage, in a lab; [`warm`] what launches with everything in memory pay, without one; [`both`]
//! looks at both and tries first what costs more; [`running`] records what runs already, and tries nothing.

mod arm_summary;
mod blocks;
mod both;
mod cold;
mod denied_files;
mod looked_for;
mod observed;
mod running;
mod time_limit;
mod warm;

use crate::arguments::{ArmSet, DiagnoseArguments};
use crate::commands::print_json;
use crate::commands::report::{self, DIAGNOSIS_FILE};
use crate::failure::{Failure, Kind, failed};
use crate::progress::Progress;
use crate::target::{PATIENCE, Target};
use crate::unprivileged::{Work, as_user};
use crate::{interrupt, output_directory, recorded_launch, whole_file};
use serde::Serialize;
use slowpath_fix::{FixPlan, apply};
use slowpath_report::terminal::{self, Style};
use slowpath_report::{Decision, Diagnosis, Verdict};
use slowpath_tables::escape_json;
use slowpath_verify::lab_session;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use time_limit::TimeLimit;

/// What is diagnosed, and where that is written.
struct Case<'a> {
    arguments: &'a DiagnoseArguments,
    target: &'a Target,
    directory: &'a Path,
    progress: &'a Progress,
}

/// Runs the command.
pub fn run(arguments: &DiagnoseArguments) -> Result<ExitCode, Failure> {
    if !arguments.pid.is_empty() {
        return running::run(arguments);
    }
    let is_both = !arguments.cold && !arguments.warm;
    lab_session::require("diagnose", arguments.cold)?;
    if arguments.warm {
        recorded_launch::require_profile("diagnose")?;
    }
    interrupt::watch();
    let target = &target(arguments)?;
    let directory = &output_directory::prepare(&arguments.output, &target.identity)?;
    let limit = arguments.max_time.or(is_both.then_some(both::USUAL_LIMIT));
    let limit = TimeLimit::from_now(limit);
    let progress = &Progress::new(arguments.quiet).until(limit.until());
    let case = Case { arguments, target, directory, progress };
    let set = arguments.arms.unwrap_or(if is_both { ArmSet::Quick } else { ArmSet::Standard });
    let diagnosis = if arguments.warm {
        warm::look(&case)?.tried(&case, &limit)?
    } else if arguments.cold {
        cold::look(&case, set)?.tried(&case, set, &limit)?
    } else {
        both::run(&case, set, &limit)?
    };
    progress.step("writing the report");
    let what = Work::writing_beneath("writing the report", directory);
    as_user(&target.identity, &what, || save(directory, &diagnosis))?;
    progress.done();
    show(arguments, directory, &diagnosis);
    Ok(ExitCode::SUCCESS)
}

/// The target of the command line, after what the user should know of it.
fn target(arguments: &DiagnoseArguments) -> Result<Target, Failure> {
    let target = Target::of(&arguments.invocation, arguments.command.clone(), Some(PATIENCE))?;
    for warning in &target.warnings {
        eprintln!("slowpath: warning: {warning}");
    }
    Ok(target)
}

fn page(directory: &Path) -> PathBuf {
    directory.join("report.html")
}

/// Writes a file of the diagnosis: whole or not at all, so that what is killed leaves none that cannot be read.
fn write_json(directory: &Path, name: &str, value: &impl Serialize) -> Result<(), Failure> {
    let text = escape_json(&serde_json::to_string_pretty(value).map_err(failed(Kind::Machine))?);
    whole_file::replace(&directory.join(name), 0o600, text.as_bytes())
}

/// Writes the diagnosis and its page. To be called as the target's user.
fn save(directory: &Path, diagnosis: &Diagnosis) -> Result<(), Failure> {
    write_json(directory, DIAGNOSIS_FILE, diagnosis)?;
    report::write_page(&report::of_diagnosis(directory, diagnosis)?, &page(directory))
}

fn show(arguments: &DiagnoseArguments, directory: &Path, diagnosis: &Diagnosis) {
    if arguments.json {
        print_json(diagnosis);
    } else {
        print!("{}", terminal::diagnosis(diagnosis, &Style::detect(std::io::stdout().is_terminal())));
        println!("report: {}", terminal::escape_terminal(&page(directory).to_string_lossy()));
        to_keep(directory, diagnosis).iter().for_each(|line| println!("keep it: {}", terminal::escape_terminal(line)));
    }
}

/// Commands that show what would be changed to keep the fixes that are proved.
fn to_keep(directory: &Path, diagnosis: &Diagnosis) -> Vec<String> {
    let is_proved = |plan: &&FixPlan| {
        let proved = |verdict: &Verdict| verdict.arm == plan.name && verdict.decision == Some(Decision::Proved);
        diagnosis.verdicts.iter().any(proved) && apply::refused_everywhere(plan).is_none()
    };
    let proved = diagnosis.fixes.iter().filter(is_proved);
    let directory = directory.to_string_lossy();
    proved.filter_map(|plan| shlex::try_join(["slowpath", "fix", "show", &directory, &plan.name]).ok()).collect()
}
