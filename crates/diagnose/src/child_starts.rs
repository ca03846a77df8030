//! Whether children of a program would start sooner from a zygote: of a recording, or of a launch that is recorded for it.

use slowpath_analysis::starts::zygote_advice::ZygoteAdvice;
use slowpath_capture::Options;
use slowpath_launch::{EndPolicy, Identity, StdioPolicy};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::fresh_directory::FreshDirectory;
use slowpath_session::running::Wanted;
use slowpath_session::target::{Target, not_ready};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{Progress, interrupt, open_recording, output_directory, recorded_command};
use slowpath_tables::Bytes;
use std::path::Path;
use std::time::Duration;

/// Most that a recording takes of the disk.
const MOST: u64 = 4 << 30;

/// What a recording says, read as its user.
///
/// # Errors
/// It cannot be read.
pub fn of_recording(directory: &Path, user: &Identity, progress: &dyn Progress) -> Result<ZygoteAdvice, Failure> {
    as_user(user, &Work::reading("reading the recording"), || {
        Ok(ZygoteAdvice::of_tables(&open_recording::open(directory, |text| progress.warn(text))?))
    })
}

/// Records the target for `duration` at most, in the directory `kept` or in one that goes with this call.
///
/// # Errors
/// It cannot be recorded, was not ready, or ctrl-C.
pub fn of_launch(
    target: &Target,
    kept: Option<&Path>,
    duration: Option<Duration>,
    progress: &dyn Progress,
) -> Result<ZygoteAdvice, Failure> {
    let fresh = FreshDirectory::new(&target.identity).map_err(failed(Kind::Machine))?;
    let place = kept.map_or_else(|| fresh.path().join("recording"), Path::to_owned);
    let directory = output_directory::prepare(&place, &target.identity)?;
    interrupt::watch();
    let options = Options { files: true, first_waits: true, waits: true, ..Options::default() };
    let wanted = Wanted { options, most: Bytes(MOST), duration };
    let recorded =
        recorded_command::record(target, wanted, &directory, EndPolicy::KillTree, StdioPolicy::Inherit, progress)?;
    if let Some(failure) = not_ready(&recorded.outcome).filter(|_| recorded.stop.is_none()) {
        return Err(failure);
    }
    if interrupt::requested() {
        return Err(Failure::new(Kind::Interrupted, "interrupted"));
    }
    of_recording(&directory, &target.identity, progress)
}
