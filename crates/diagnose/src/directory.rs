//! The directory of a diagnosis: what its files are called, and writing one.

use crate::printed::Diagnosis;
use serde::Serialize;
use slowpath_launch::Identity;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{output_directory, whole_file};
use slowpath_tables::escape_json;
use std::path::{Path, PathBuf};

/// File of a diagnosis in its directory.
pub const DIAGNOSIS_FILE: &str = "diagnosis.json";
/// Recording of the untreated cold launch in the directory of a diagnosis.
pub const COLD: &str = "cold";
/// Recording of the first launch at readahead 0 there.
pub const NEEDED: &str = "needed-1";
/// Recording of the untreated warm launch in the directory of a warm diagnosis.
pub const WARM: &str = "warm";
/// Recording of running processes in the directory of their diagnosis.
pub const RUNNING: &str = "running";

/// The recording that explains the launches that lead in a diagnosis, and one of which pages were needed.
pub fn recordings(diagnosis: &Diagnosis) -> (&'static str, Option<&'static str>) {
    match (&diagnosis.running, diagnosis.warm) {
        (Some(_), _) => (RUNNING, None),
        (None, true) => (WARM, None),
        (None, false) => (COLD, Some(NEEDED)),
    }
}

/// Makes the directory for everything, one that was asked for or the next of the usual name. Its path has no link of before the launch:
/// by it root knows the diagnosis again, wherever links lead later.
///
/// # Errors
/// It cannot be made, or is not empty.
pub fn prepare(asked_for: Option<&Path>, user: &Identity) -> Result<PathBuf, Failure> {
    let made = match asked_for {
        Some(asked_for) => output_directory::prepare(asked_for, user),
        None => output_directory::prepare_numbered(Path::new("slowpath-diagnosis"), user),
    }?;
    as_user(user, &Work::reading("preparing the output directory"), || {
        std::fs::canonicalize(&made).map_err(failed(Kind::Usage))
    })
}

/// The text of a file of the diagnosis.
///
/// # Errors
/// It cannot be put into JSON.
pub fn json_text(value: &impl Serialize) -> Result<String, Failure> {
    Ok(escape_json(&serde_json::to_string_pretty(value).map_err(failed(Kind::Machine))?))
}

/// Writes a file of the diagnosis: whole or not at all, so that what is killed leaves none that cannot be read.
///
/// # Errors
/// It cannot be written.
pub fn write_text(directory: &Path, name: &str, text: &str) -> Result<(), Failure> {
    whole_file::replace(&directory.join(name), 0o600, text.as_bytes())
}

/// The same of a value.
///
/// # Errors
/// It cannot be written.
pub fn write_json(directory: &Path, name: &str, value: &impl Serialize) -> Result<(), Failure> {
    write_text(directory, name, &json_text(value)?)
}
