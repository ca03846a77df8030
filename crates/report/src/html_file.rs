//! HTML pages as files: of a recording, and of a diagnosis with the recordings beside it. Files are read and written as the user whose they
//! are, which is for the command to see to.

use crate::html::{self, PageData};
use crate::{Diagnosis, MOST_DIAGNOSIS_BYTES, ReportData};
use slowpath_diagnose::directory::{DIAGNOSIS_FILE, recordings, write_json};
use slowpath_launch::Identity;
use slowpath_recording::Tables;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::recorded_launch::now_rfc3339;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{Progress, foreign_file, open_recording, whole_file};
use std::path::{Path, PathBuf};

/// Writes the page of a directory, which holds a diagnosis or a recording.
///
/// # Errors
/// It holds neither, or the page cannot be written.
pub fn of_directory(directory: &Path, to: &Path, progress: &dyn Progress) -> Result<(), Failure> {
    let diagnosis = directory.join(DIAGNOSIS_FILE);
    if diagnosis.exists() {
        return of_diagnosis(directory, &saved(&diagnosis)?, to, progress);
    }
    write(&ReportData::of_tables(&open(directory, progress)?, None, None, now_rfc3339()), to)
}

/// Writes the page of a diagnosis; its recordings are in `directory`.
///
/// # Errors
/// A recording cannot be read, or the page cannot be written.
pub fn of_diagnosis(
    directory: &Path,
    diagnosis: &Diagnosis,
    to: &Path,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let (shown, needed) = recordings(diagnosis);
    let needed = needed.map(|needed| open(&directory.join(needed), progress)).transpose()?;
    let shown = open(&directory.join(shown), progress)?;
    write(&ReportData::of_diagnosis(diagnosis, &shown, needed.as_ref(), now_rfc3339()), to)
}

/// Writes a diagnosis and its page into its directory, as its user; the page's name is returned.
///
/// # Errors
/// As [`of_diagnosis`], or the diagnosis cannot be written.
pub fn with_diagnosis(
    directory: &Path,
    identity: &Identity,
    diagnosis: &Diagnosis,
    progress: &dyn Progress,
) -> Result<PathBuf, Failure> {
    let page = directory.join("report.html");
    as_user(identity, &Work::writing_beneath("writing the report", directory), || {
        write_json(directory, DIAGNOSIS_FILE, diagnosis)?;
        of_diagnosis(directory, diagnosis, &page, progress)
    })?;
    Ok(page)
}

/// Writes a page; the file is made new or replaced as a whole, and never through a link.
///
/// # Errors
/// It cannot be written.
pub fn write(data: &impl PageData, to: &Path) -> Result<(), Failure> {
    let page = html::render(data).map_err(failed(Kind::Machine))?;
    whole_file::replace(to, 0o600, page.as_bytes())
}

fn open(directory: &Path, progress: &dyn Progress) -> Result<Tables, Failure> {
    open_recording::open(directory, |text| progress.warn(text))
}

/// A diagnosis that `diagnose` wrote.
///
/// # Errors
/// The file is none.
pub fn saved(path: &Path) -> Result<Diagnosis, Failure> {
    let wrong = |why: String| {
        Failure::new(Kind::Usage, format!("{} is no diagnosis: {why}", path.display()))
            .hint("`slowpath diagnose` writes it; the recordings beside it can be read with `slowpath analyze DIR/cold` or DIR/warm")
    };
    let text = foreign_file::read(path, MOST_DIAGNOSIS_BYTES).map_err(|error| wrong(error.to_string()))?;
    Diagnosis::of_json(&text).map_err(|error| wrong(error.to_string()))
}
