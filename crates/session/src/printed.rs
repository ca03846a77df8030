//! What `slowpath record --json` prints of a recording that was made. Leaves a failure's own to [`crate::failure`].

use schemars::JsonSchema;
use serde::Serialize;
use slowpath_recording::Manifest;
use std::path::Path;

/// What `slowpath record --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Recorded {
    /// `slowpath-record/1`.
    schema: &'static str,
    /// Directory of the recording.
    recording: String,
    /// Its manifest.
    manifest: Manifest,
}

impl Recorded {
    /// A recording in a directory.
    pub fn new(directory: &Path, manifest: Manifest) -> Self {
        Self { schema: "slowpath-record/1", recording: directory.to_string_lossy().into_owned(), manifest }
    }
}
