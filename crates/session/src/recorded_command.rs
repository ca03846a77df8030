//! One launch of a command, recorded while it runs.

use crate::Progress;
use crate::failure::Failure;
use crate::recorded_launch::{self, RecordingSubject};
use crate::recording_writer::WriterProcess;
use crate::running::Wanted;
use crate::streamed_recording::{self, StreamedRecording};
use crate::target::{Target, launcher};
use slowpath_launch::{EndPolicy, LaunchOutcome, StdioPolicy};
use slowpath_recording::Manifest;
use std::path::Path;

/// What became of it.
pub struct RecordedCommand {
    /// How the launch went.
    pub outcome: LaunchOutcome,
    /// The recording's manifest.
    pub manifest: Manifest,
    /// Why recording stopped before the launch ended.
    pub stop: Option<String>,
}

/// Launches `target` once and records it into a directory that is prepared.
///
/// # Errors
/// The kernel refuses, the command cannot be launched, or the recording cannot be written.
pub fn record(
    target: &Target,
    wanted: Wanted,
    directory: &Path,
    end: EndPolicy,
    stdio: StdioPolicy,
    progress: &dyn Progress,
) -> Result<RecordedCommand, Failure> {
    // Before anything is loaded into the kernel, which it would hold.
    let writer = WriterProcess::start(&target.identity, directory, wanted.most)?;
    progress.step("loading the recorder");
    let recording = StreamedRecording::load(wanted.options, writer, RecordingSubject::of(target), wanted.duration)?;
    let recording = recording.prepared(&target.program());
    let (spec, _fresh) = target.spec(end, stdio)?;
    progress.done();
    let launched = |outcome: &_| recorded_launch::launch_of(target, outcome);
    let (outcome, manifest, stop) = streamed_recording::launch(&mut launcher(), &spec, recording, launched)?;
    Ok(RecordedCommand { outcome, manifest, stop })
}
