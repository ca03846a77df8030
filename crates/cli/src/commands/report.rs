//! `slowpath report`: one self-contained HTML page of a recording or a diagnosis.

use crate::arguments::ReportArguments;
use crate::commands::analyze;
use crate::failure::{Failure, Kind, failed};
use crate::foreign_file;
use crate::unprivileged::{Work, as_user};
use crate::whole_file;
use slowpath_diagnose::directory::{DIAGNOSIS_FILE, recordings};
use slowpath_report::html;
use slowpath_report::terminal::escape_terminal;
use slowpath_report::{Diagnosis, MOST_DIAGNOSIS_BYTES, ReportData};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Everything the page of a diagnosis shows; its recordings are in `directory`.
pub fn of_diagnosis(directory: &Path, diagnosis: &Diagnosis) -> Result<ReportData, Failure> {
    let (shown, needed) = recordings(diagnosis);
    let needed = needed.map(|needed| analyze::open(&directory.join(needed))).transpose()?;
    let shown = analyze::open(&directory.join(shown))?;
    Ok(ReportData::of_diagnosis(diagnosis, &shown, needed.as_ref(), super::now_rfc3339()))
}

/// Writes a page; the file is made new or replaced as a whole, and never through a link.
pub fn write_page(data: &impl html::PageData, to: &Path) -> Result<(), Failure> {
    let page = html::render(data).map_err(failed(Kind::Machine))?;
    whole_file::replace(to, 0o600, page.as_bytes())
}

/// A diagnosis that `diagnose` wrote.
fn saved(path: &Path) -> Result<Diagnosis, Failure> {
    let wrong = |why: String| {
        Failure::new(Kind::Usage, format!("{} is no diagnosis: {why}", path.display()))
            .hint("`slowpath diagnose` writes it; the recordings beside it can be read with `slowpath analyze DIR/cold` or DIR/warm")
    };
    let text = foreign_file::read(path, MOST_DIAGNOSIS_BYTES).map_err(|error| wrong(error.to_string()))?;
    Diagnosis::of_json(&text).map_err(|error| wrong(error.to_string()))
}

/// Runs the command.
pub fn run(arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    let what = Work::writing("writing the report", arguments.output.as_path());
    let written: PathBuf = as_user(&super::invoker()?, &what, || {
        let directory = &arguments.directory;
        let diagnosis_file = directory.join(DIAGNOSIS_FILE);
        let data = if diagnosis_file.exists() {
            of_diagnosis(directory, &saved(&diagnosis_file)?)?
        } else {
            ReportData::of_tables(&analyze::open(directory)?, None, None, super::now_rfc3339())
        };
        write_page(&data, &arguments.output)?;
        Ok(arguments.output.clone())
    })?;
    eprintln!("slowpath: the report is {}", escape_terminal(&written.to_string_lossy()));
    Ok(ExitCode::SUCCESS)
}
