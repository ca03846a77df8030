//! `slowpath analyze`: the findings of a recording.

use crate::arguments::AnalyzeArguments;
use crate::failure::{Failure, Kind, failed};
use crate::unprivileged::as_user;
use slowpath_analysis::findings;
use slowpath_recording::{Recording, Tables};
use slowpath_report::terminal::{self, Style};
use slowpath_report::{ANALYZE_SCHEMA, Analysis};
use slowpath_tables::{Quantity, Unit};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Opens a recording with what is whole in it; damage is said on standard error.
pub fn open(directory: &Path) -> Result<Tables, Failure> {
    let recording = Recording::open(directory).map_err(failed(Kind::Usage)).map_err(|failure| {
        failure.hint("a recording is a directory made by `slowpath record` or inside that of `slowpath diagnose`")
    })?;
    let (tables, damages) = recording.tables_whole();
    for damage in &damages {
        eprintln!("slowpath: warning: {}; the rest was read", terminal::escape_terminal(&damage.to_string()));
    }
    Ok(tables)
}

/// What a recording shows, as printed.
pub fn analysis(directory: &Path, tables: &Tables, needed: Option<&Tables>) -> Analysis {
    let manifest = &tables.manifest;
    let launch = manifest.launch.as_ref();
    let time = launch.and_then(|launch| Some((launch.ready? - launch.released).as_ms()));
    Analysis {
        schema: ANALYZE_SCHEMA.to_owned(),
        command: manifest.command.clone(),
        recording: directory.to_string_lossy().into_owned(),
        time_to_ready: time.map(|ms| Quantity::exact(ms, Unit::Ms)),
        findings: findings::of_recordings(&[tables], needed),
        losses: manifest.losses.clone(),
        unavailable: manifest.unavailable.clone(),
    }
}

/// Runs the command.
pub fn run(arguments: &AnalyzeArguments) -> Result<ExitCode, Failure> {
    let analysis = as_user(&super::invoker()?, || {
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
