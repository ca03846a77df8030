//! Preload plans as files: the recordings that one is made from, writing and reading it.

use slowpath_analysis::io::demand::Demand;
use slowpath_analysis::io::merge::merge;
use slowpath_analysis::launch_facts::LaunchFacts;
use slowpath_fix::preload_plan::build::build;
use slowpath_fix::preload_plan::file::{create, read};
use slowpath_fix::preload_plan::{PlanOptions, PreloadPlan, Provenance};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::foreign_file;
use slowpath_session::open_recording::open;
use slowpath_session::recorded_launch::now_rfc3339;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The trainings in `directories`: recordings at readahead 0, or the `needed-N` of a diagnosis.
///
/// # Errors
/// One is none, or was not made at readahead 0.
pub fn trainings(directories: &[PathBuf], warn: impl Fn(&str)) -> Result<(Vec<Demand>, Vec<String>), Failure> {
    let mut recordings = Vec::new();
    for directory in directories {
        let mut inside: Vec<PathBuf> =
            (1..=99).map(|n| directory.join(format!("needed-{n}"))).take_while(|path| path.is_dir()).collect();
        if inside.is_empty() {
            inside.push(directory.clone());
        }
        recordings.extend(inside);
    }
    let mut demands = Vec::new();
    for recording in &recordings {
        let tables = open(recording, &warn)?;
        let demand = Demand::of_training(&LaunchFacts::new(&tables)).map_err(|error| {
            Failure::from_error(Kind::Usage, &error)
                .hint("a plan is made from launches at readahead 0: `slowpath diagnose` records them as DIR/needed-N")
        })?;
        demands.push(demand);
    }
    Ok((demands, recordings.iter().map(|path| path.to_string_lossy().into_owned()).collect()))
}

/// Makes a plan from trainings and writes it, as whoever this process is; what is in it is returned.
///
/// # Errors
/// As [`trainings`] and [`write_plan`].
pub fn make_plan(directories: &[PathBuf], to: &Path, warn: impl Fn(&str)) -> Result<String, Failure> {
    let (demands, recordings) = trainings(directories, warn)?;
    let merged = merge(&demands.iter().collect::<Vec<_>>());
    let provenance = Provenance { created: now_rfc3339(), command: Vec::new(), recordings };
    let built = build(&merged, &PlanOptions::default(), provenance);
    write_plan(&built.plan, to)?;
    Ok(built.plan.fix_plan("").title)
}

/// Reads a plan, which anybody may have written.
///
/// # Errors
/// It cannot be opened, or is none.
pub fn read_plan(path: &Path) -> Result<PreloadPlan, Failure> {
    let file = foreign_file::open(path)
        .map_err(|error| Failure::new(Kind::Usage, format!("{} cannot be read: {error}", path.display())))?;
    read(BufReader::new(file)).map_err(failed(Kind::Usage))
}

/// Writes a plan, as whoever this process is.
///
/// # Errors
/// It cannot be written.
pub fn write_plan(plan: &PreloadPlan, to: &Path) -> Result<(), Failure> {
    let unwritten = |error| Failure::new(Kind::Usage, format!("{} cannot be written: {error}", to.display()));
    create(plan, to).map_err(unwritten)
}
