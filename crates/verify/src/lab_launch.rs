//! One launch in a lab: cold and proved cold, or warm and proved warm.

use slowpath_lab::{Coldness, DeviceIo, Lab, LabError};
use slowpath_launch::{BoxError, Hooks, LaunchError, LaunchOutcome, LaunchSpec, Launcher};
use slowpath_tables::Bytes;
use std::os::fd::BorrowedFd;

/// Why a launch in a lab could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LabLaunchError {
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The launch failed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// A launch and the state of the page cache around it.
#[derive(Debug)]
pub struct LaunchInLab {
    /// What the launch gave.
    pub outcome: LaunchOutcome,
    /// What was read from the lab's device.
    pub io: DeviceIo,
    /// Why it does not count as what it was to be; `None` when it does.
    pub not_as_meant: Option<String>,
}

/// Asks the lab for its proof after the mounts and before exec, then passes on to the caller's hooks.
struct ProveCold<'a> {
    lab: &'a Lab,
    inner: &'a mut dyn Hooks,
    against: Option<String>,
}

impl Hooks for ProveCold<'_> {
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        self.inner.before_release(pid)?;
        if let Coldness::Lukewarm { reason, pages } = self.lab.verify_cold()? {
            self.against = Some(format!("lukewarm: {reason} ({} pages)", pages.0));
        }
        Ok(())
    }
    fn on_released(&mut self, at: u64) {
        self.inner.on_released(at);
    }
    fn on_tick(&mut self) {
        self.inner.on_tick();
    }
    fn wakes(&self) -> Option<BorrowedFd<'_>> {
        self.inner.wakes()
    }
    fn on_wake(&mut self) {
        self.inner.on_wake();
    }
    fn on_ready(&mut self, at: u64) {
        self.inner.on_ready(at);
    }
    fn stop_requested(&self) -> bool {
        self.inner.stop_requested()
    }
}

/// The spec with the lab's mounts, cgroups and a pid namespace.
fn in_lab(lab: &Lab, mut spec: LaunchSpec) -> LaunchSpec {
    spec.mounts = lab.mounts();
    spec.cgroups = lab.cgroups();
    spec.pid_namespace = true;
    spec
}

/// A cold launch. `needed` is what a launch is known to need at least, once it is known: a launch that read less was
/// not cold.
///
/// # Errors
/// The lab or the launch failed; a launch that was not cold is no error.
pub fn cold(
    lab: &Lab,
    launcher: &mut dyn Launcher,
    spec: LaunchSpec,
    hooks: &mut dyn Hooks,
    needed: Option<Bytes>,
) -> Result<LaunchInLab, LabLaunchError> {
    lab.prepare_cold()?;
    let before = lab.io()?;
    let mut prove = ProveCold { lab, inner: hooks, against: None };
    let outcome = launcher.launch(&in_lab(lab, spec), &mut prove)?;
    let mut not_as_meant = prove.against.or_else(|| lab.against_left_out(&outcome.left_out));
    let io = lab.io()? - before;
    if not_as_meant.is_none()
        && outcome.ready_at.is_some()
        && let Some(needed) = needed
        && let Coldness::Lukewarm { reason, .. } = slowpath_lab::check_bytes(needed, io.bytes)
    {
        not_as_meant = Some(format!("lukewarm: {reason}"));
    }
    Ok(LaunchInLab { outcome, io, not_as_meant })
}

/// A warm launch: the same launch again and again on the same mounted file system, until one reads nothing more from
/// the device; that one counts. What is selected is what was read, never how long it took.
///
/// # Errors
/// The lab or the launch failed.
pub fn warm<Guard, E: From<LabLaunchError>>(
    lab: &Lab,
    launcher: &mut dyn Launcher,
    mut spec: impl FnMut() -> Result<(LaunchSpec, Guard), E>,
    hooks: &mut dyn Hooks,
) -> Result<LaunchInLab, E> {
    lab.prepare_cold().map_err(LabLaunchError::from)?;
    let _kept = lab.keep_mounted().map_err(LabLaunchError::from)?;
    let mut launches = 0;
    loop {
        let before = lab.io().map_err(LabLaunchError::from)?;
        let (spec, _guard) = spec()?;
        let outcome = launcher.launch(&in_lab(lab, spec), hooks).map_err(LabLaunchError::from)?;
        let io = lab.io().map_err(LabLaunchError::from)? - before;
        launches += 1;
        let is_warm = launches > 1 && io.bytes <= WARM_ALLOWANCE;
        if is_warm || launches == WARM_LAUNCHES || outcome.ready_at.is_none() {
            let not_as_meant = (!is_warm)
                .then(|| format!("not warm: launch {launches} still read {} bytes from the device", io.bytes.0));
            return Ok(LaunchInLab { outcome, io, not_as_meant });
        }
    }
}

/// A warm launch may read this much: 256 KiB, two readahead windows, for what a launch does that the one before did
/// not (a random choice, a cache entry that expired).
pub const WARM_ALLOWANCE: Bytes = Bytes(256 << 10);
/// Launches in a row until one reads no more; a launch that is ended when it is ready leaves some reading undone.
const WARM_LAUNCHES: usize = 6;
