//! Reading a recording with what is whole in it: one that is damaged, in progress or has no end is read as far as it goes.

use crate::failure::{Failure, Kind, failed};
use slowpath_process::Owner;
use slowpath_recording::{Manifest, Progress, RecorderProcess, Recording, Tables};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::path::Path;

/// Opens a recording with what is whole in it; `warn` gets a line for damage, and for a missing end.
///
/// # Errors
/// It is none.
pub fn open(directory: &Path, warn: impl Fn(&str)) -> Result<Tables, Failure> {
    let recording = Recording::open(directory).map_err(failed(Kind::Usage)).map_err(|failure| {
        failure.hint("a recording is a directory made by `slowpath record` or inside that of `slowpath diagnose`")
    })?;
    let (mut tables, damages) = recording.tables_whole();
    for damage in &damages {
        warn(&format!("{damage}; the rest was read"));
    }
    if let Some(gap) = unfinished(&tables.manifest) {
        warn(&gap.reason);
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
