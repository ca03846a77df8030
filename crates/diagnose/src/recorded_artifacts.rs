//! The artifacts that a recording names: files that its processes opened, mapped or read, and opens that were refused.
//!
//! What the files are like now is looked at by an audit.

use crate::used_artifacts;
use serde::{Deserialize, Serialize};
use slowpath_analysis::not_recorded;
use slowpath_artifacts::families::is_artifact;
use slowpath_recording::Tables;
use slowpath_tables::missing::declared;
use slowpath_tables::{Open, Unavailable};
use std::path::Path;

/// What a recording says.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Absolute paths of artifacts.
    pub paths: Vec<String>,
    /// The user of the recorded command; `None` where running processes were recorded.
    pub uid: Option<u32>,
    /// What the recording does not have.
    pub unavailable: Vec<Unavailable>,
}

/// What a recording names.
pub fn named(tables: &Tables) -> Recorded {
    let files = tables.files.iter().filter(|file| !file.directory).map(|file| file.path.as_str());
    let files = files.filter(|path| Path::new(path).is_absolute() && is_artifact(Path::new(path)));
    let mut paths = used_artifacts(&tables.files, &tables.opens, shows_a_file);
    paths.extend(files);
    let unavailable = not_recorded::opens(&tables.manifest)
        .map(|reason| declared::REFUSED_OPENS.because(reason, "make another recording"));
    let unavailable = unavailable.into_iter().collect();
    let command = tables.execs.first().filter(|exec| !exec.present);
    Recorded { paths: paths.into_iter().map(str::to_owned).collect(), uid: command.map(|exec| exec.uid), unavailable }
}

/// Whether there was a file: it was opened, or refused. A path that was tried and is not there is how programs search, and no artifact.
fn shows_a_file(open: &Open) -> bool {
    open.result >= 0 || [libc::EACCES, libc::EPERM].contains(&-open.result)
}
