//! The directory of a diagnosis: what its files are called, and writing one.

use crate::printed::Diagnosis;
use serde::Serialize;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::whole_file;
use slowpath_tables::escape_json;
use std::path::Path;

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

/// Writes a file of the diagnosis: whole or not at all, so that what is killed leaves none that cannot be read.
///
/// # Errors
/// It cannot be written.
pub fn write_json(directory: &Path, name: &str, value: &impl Serialize) -> Result<(), Failure> {
    let text = escape_json(&serde_json::to_string_pretty(value).map_err(failed(Kind::Machine))?);
    whole_file::replace(&directory.join(name), 0o600, text.as_bytes())
}
