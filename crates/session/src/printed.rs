//! What `slowpath record --json` prints of a recording that was made. Leaves a failure's own to [`crate::failure`].

use schemars::JsonSchema;
use serde::Serialize;
use slowpath_recording::Manifest;
use std::path::Path;

/// Version of what `slowpath record --json` prints.
const SCHEMA: &str = "slowpath-record/1";

/// What `slowpath record --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Recorded {
    /// `slowpath-record/1`.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Directory of the recording.
    recording: String,
    /// Its manifest.
    manifest: Manifest,
}

impl Recorded {
    /// A recording in a directory.
    pub fn new(directory: &Path, manifest: Manifest) -> Self {
        Self { schema: SCHEMA, recording: directory.to_string_lossy().into_owned(), manifest }
    }
}
