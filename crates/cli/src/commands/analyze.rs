//! `slowpath analyze`: the findings of a recording.

use crate::arguments::AnalyzeArguments;
use crate::failure::{Failure, Kind, failed};
use crate::unprivileged::{Work, as_user};
use slowpath_analysis::findings;
use slowpath_analysis::ledger::not_asked_for;
use slowpath_lab::Owner;
use slowpath_recording::{Manifest, Progress, RecorderProcess, Recording, Tables};
use slowpath_report::terminal::{self, Style};
use slowpath_report::{ANALYZE_SCHEMA, Analysis};
use slowpath_tables::missing::declared;
use slowpath_tables::{Quantity, Unavailable, Unit};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Opens a recording with what is whole in it; damage, and that there is no end, is said on
/// standard error.
pub fn open(directory: &Path) -> Result<Tables, Failure> {
    let recording = Recording::open(directory).map_err(failed(Kind::Usage)).map_err(|failure| {
        failure.hint("a recording is a directory made by `slowpath record` or inside that of `slowpath diagnose`")
    })?;
    let (mut tables, damages) = recording.tables_whole();
    for damage in &damages {
        eprintln!("slowpath: warning: {}; the rest was read", terminal::escape_terminal(&damage.to_string()));
    }
    if let Some(gap) = unfinished(&tables.manifest) {
        eprintln!("slowpath: warning: {}", gap.reason);
        tables.manifest.unavailable.push(gap);
    }
    Ok(tables)
}

/// What a recording without an end lacks.
fn unfinished(manifest: &Manifest) -> Option<Unavailable> {
    let is_alive = |recorder: RecorderProcess| Owner { pid: recorder.pid, start: recorder.start }.is_alive();
    let (reason, remedy) = match manifest.progress(is_alive) {
        Progress::Ended => return None,
        Progress::InProgress => (
            "the recording is in progress: what was written until now was read",
            "read it again when it has ended; segments are written every few seconds",
        ),
        Progress::Killed => (
            "the recording has no end, its recorder was killed: what was written until then was read",
            "stop a recording with ctrl-C, SIGTERM or --duration",
        ),
    };
    Some(declared::END.because(reason, remedy))
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
        losses: manifest.losses.clone(),
        unavailable,
    }
}

/// Runs the command.
pub fn run(arguments: &AnalyzeArguments) -> Result<ExitCode, Failure> {
    let analysis = as_user(&super::invoker()?, &Work::reading("analysing the recording"), || {
        let tables = open(&arguments.recording)?;
        let needed = arguments.needed.as_deref().map(open).transpose()?;
        Ok(analysis(&arguments.recording, &tables, needed.as_ref()))
    })?;
    if arguments.json {
        super::print_json(&analysis);
    } else {
        print!("{}", terminal::analysis(&analysis, &Style::detect(std::io::stdout().is_terminal())));
    }
    Ok(ExitCode::SUCCESS)
}
