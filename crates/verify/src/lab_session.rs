//! A lab for a target: what its launch needs is seen in a first recorded launch on the host and copied into an image.

use crate::LabLaunchError;
use slowpath_capture::{Options, decode};
use slowpath_lab::{Closure, DEFAULT_BASE, ExtraFile, Image, Lab, Settings};
use slowpath_launch::{EndPolicy, StdioPolicy};
use slowpath_session::Progress;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::recorded_launch::{self, RecorderHooks};
use slowpath_session::target::{Target, launch_failure, launcher, not_ready};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_tables::Bytes;
use std::collections::BTreeSet;
use std::path::Path;

/// File of random bytes in the image, for the sham arm that reads as much as the plan and nothing useful.
pub const UNRELATED: &str = "unrelated";
/// The unrelated file is at most this large.
const UNRELATED_LIMIT: Bytes = Bytes(1 << 30);
/// `O_WRONLY | O_RDWR`: a file that the target writes cannot come from a read-only image.
const WRITE_FLAGS: u32 = 3;

/// What `slowpath_lab::availability` calls a gap without which there is no lab.
pub const LAB: &str = "lab";

/// Refuses early when this machine cannot record, or cannot have a lab where one is wanted.
pub fn require(what: &str, with_lab: bool) -> Result<(), Failure> {
    let lab = if with_lab { slowpath_lab::availability::missing() } else { Vec::new() };
    recorded_launch::require(what, lab.into_iter().filter(|gap| gap.what == LAB))
}

/// Launches the target once on the host, recorded, and lists the files that it used and did not write.
pub fn first_look(target: &Target, progress: &dyn Progress) -> Result<BTreeSet<String>, Failure> {
    progress.step("first launch: which files does it use?");
    let hooks = RecorderHooks::load(Options::default(), &target.identity)?;
    let (mut spec, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
    spec.pid_namespace = true;
    let (outcome, raw, _) = recorded_launch::launch(&mut launcher(), &spec, hooks)?;
    if let Some(failure) = not_ready(&outcome) {
        return Err(failure);
    }
    as_user(&target.identity, &Work::reading("reading a recorded launch"), || Ok(files_used(&raw)))
}

/// Paths of the files that a recorded launch used and did not write.
pub fn files_used(raw: &slowpath_capture::RawCapture) -> BTreeSet<String> {
    let decoded = decode(raw);
    let written: BTreeSet<(Option<u64>, Option<u64>)> =
        decoded.opens.iter().filter(|open| open.flags & WRITE_FLAGS != 0).map(|open| (open.dev, open.ino)).collect();
    decoded
        .files
        .iter()
        .filter(|file| !file.directory && file.path.starts_with('/'))
        .filter(|file| !written.contains(&(Some(file.dev), Some(file.ino))))
        .map(|file| file.path.clone())
        .collect()
}

/// Builds the lab that holds `files`.
pub fn build(
    files: &BTreeSet<String>,
    settings: Settings,
    with_unrelated: bool,
    progress: &dyn Progress,
) -> Result<Lab, Failure> {
    let closure = Closure::from_paths(files);
    progress.step(&format!(
        "building the lab: {} files, {:.0} MB",
        closure.files().len(),
        closure.total_size().as_mb()
    ));
    let extra = if with_unrelated {
        let size = Bytes(closure.total_size().0.min(UNRELATED_LIMIT.0));
        vec![ExtraFile { path_in_image: UNRELATED.into(), size, seed: 1 }]
    } else {
        Vec::new()
    };
    let image = Image::build(&closure, Path::new(DEFAULT_BASE), extra).map_err(failed(Kind::Machine))?;
    Lab::new(image, settings).map_err(failed(Kind::Machine))
}

/// The failure of launches that [`crate::warm`] makes.
pub struct InLab(pub Failure);

impl From<LabLaunchError> for InLab {
    fn from(error: LabLaunchError) -> Self {
        Self(lab_failure(error))
    }
}

/// The failure of a launch in a lab.
pub fn lab_failure(error: LabLaunchError) -> Failure {
    match error {
        LabLaunchError::Launch(error) => launch_failure(&error),
        LabLaunchError::Lab(error) => Failure::from_error(Kind::Machine, &error),
    }
}
