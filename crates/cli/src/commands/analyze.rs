//! `slowpath analyze`: the findings of a recording.

use crate::arguments::AnalyzeArguments;
use crate::failure::Failure;
use crate::unprivileged::{Work, as_user};
use slowpath_analysis::findings;
use slowpath_analysis::ledger::not_asked_for;
use slowpath_recording::Tables;
use slowpath_report::terminal::{self, Style};
use slowpath_report::{ANALYZE_SCHEMA, Analysis};
use slowpath_session::open_recording;
use slowpath_tables::{Quantity, Unit};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Opens a recording with what is whole in it; damage, and that there is no end, is said on
/// standard error.
pub fn open(directory: &Path) -> Result<Tables, Failure> {
    open_recording::open(directory, |text| eprintln!("slowpath: warning: {text}"))
}

/// What a recording shows, as printed.
fn analysis(directory: &Path, tables: &Tables, needed: Option<&Tables>) -> Analysis {
    let manifest = &tables.manifest;
    let launch = manifest.launch.as_ref();
    let shares = slowpath_report::shares_of(tables);
    let mut unavailable = manifest.unavailable.clone();
    let found = slowpath_report::ledger_of(tables, &shares);
    let ledger = found.and_then(|found| found.ok_or_else(not_asked_for)).map_err(|gap| unavailable.push(gap)).ok();
    let critical_path = slowpath_report::critical_path_of(tables, &shares);
    let round_trips = slowpath_report::round_trips_of(tables);
    let time = launch.and_then(|launch| Some((launch.ready? - launch.released).as_ms()));
    Analysis {
        schema: ANALYZE_SCHEMA.to_owned(),
        command: manifest.command.clone(),
        recording: directory.to_string_lossy().into_owned(),
        time_to_ready: time.map(|ms| Quantity::exact(ms, Unit::Ms)),
        findings: findings::of_recordings(&[tables], needed),
        shares,
        ledger,
        critical_path,
        round_trips,
        losses: manifest.losses.clone(),
        unavailable,
    }
}

/// Runs the command.
pub fn run(arguments: &AnalyzeArguments) -> Result<ExitCode, Failure> {
    let analysis = as_user(&super::invoker()?, &Work::reading("analysing the recording"), || {
        let tables = open(&arguments.recording)?;
        let needed = arguments.training.as_deref().map(open).transpose()?;
        Ok(analysis(&arguments.recording, &tables, needed.as_ref()))
    })?;
    if arguments.json {
        super::print_json(&analysis);
    } else {
        print!("{}", terminal::analysis(&analysis, &Style::detect(std::io::stdout().is_terminal())));
    }
    Ok(ExitCode::SUCCESS)
}
