//! One launch in a lab: cold and proved cold, or warm and proved warm.

use slowpath_lab::{Coldness, DeviceIo, KeptMounted, Lab, LabError, PageRun};
use slowpath_launch::{BoxError, EndPolicy, Hooks, LaunchError, LaunchOutcome, LaunchSpec, Launcher};
use slowpath_tables::Bytes;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

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
    /// What keeps the files that it read in memory, for a warm launch that follows. The next cold one waits until it is dropped.
    pub kept: Option<KeptMounted>,
}

/// Passes on to the caller's hooks, and does what a lab needs around a launch: asks for its proof of coldness after the mounts and
/// before exec, and lifts the throttle where the launch is to be ended.
struct InLab<'a> {
    lab: &'a Lab,
    inner: &'a mut dyn Hooks,
    proves_cold: bool,
    keeps: bool,
    kept: Option<KeptMounted>,
    against: Option<String>,
    ends_when_ready: bool,
    timeout: Option<Duration>,
    released: Option<Instant>,
}

impl<'a> InLab<'a> {
    fn new(lab: &'a Lab, spec: &LaunchSpec, proves_cold: bool, inner: &'a mut dyn Hooks) -> Self {
        Self {
            lab,
            inner,
            proves_cold,
            keeps: false,
            kept: None,
            against: None,
            ends_when_ready: spec.end == EndPolicy::KillTree,
            timeout: spec.timeout,
            released: None,
        }
    }

    /// What fails here fails again at the next launch, which says so.
    fn lift_throttle(&self) {
        let _ = self.lab.lift_throttle();
    }
}

impl Hooks for InLab<'_> {
    fn follows(&self) -> bool {
        self.proves_cold || self.inner.follows()
    }
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        self.inner.before_release(pid)?;
        // The launch before may have lifted it.
        self.lab.impose_throttle()?;
        if self.proves_cold
            && let Coldness::Lukewarm { reason, pages } = self.lab.verify_cold()?
        {
            self.against = Some(format!("lukewarm: {reason} ({} pages)", pages.0));
        }
        if self.keeps {
            // The file system is mounted by now: its superblock gets one more mount, and nothing is read.
            self.kept = Some(self.lab.keep_mounted()?);
        }
        self.released = Some(Instant::now());
        Ok(())
    }
    fn on_released(&mut self, at: u64) {
        self.inner.on_released(at);
    }
    fn on_tick(&mut self) {
        if self.released.zip(self.timeout).is_some_and(|(released, timeout)| released.elapsed() > timeout) {
            self.lift_throttle();
        }
        self.inner.on_tick();
    }
    fn interrupted(&mut self) -> bool {
        self.inner.interrupted()
    }
    fn wakes(&self) -> Option<BorrowedFd<'_>> {
        self.inner.wakes()
    }
    fn on_wake(&mut self) {
        self.inner.on_wake();
    }
    fn on_ready(&mut self, at: u64) {
        if self.ends_when_ready {
            self.lift_throttle();
        }
        self.inner.on_ready(at);
    }
    fn stop_requested(&self) -> bool {
        let stops = self.inner.stop_requested();
        if stops {
            self.lift_throttle();
        }
        stops
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
/// not cold. `keep`: what it reads stays in memory, until what keeps it is dropped.
///
/// # Errors
/// The lab or the launch failed; a launch that was not cold is no error.
pub fn cold(
    lab: &Lab,
    launcher: &mut dyn Launcher,
    spec: LaunchSpec,
    hooks: &mut dyn Hooks,
    needed: Option<Bytes>,
    keep: bool,
) -> Result<LaunchInLab, LabLaunchError> {
    lab.prepare_cold()?;
    let before = lab.io()?;
    let mut hooks = InLab { keeps: keep, ..InLab::new(lab, &spec, true, hooks) };
    let outcome = launcher.launch(&in_lab(lab, spec), &mut hooks)?;
    let InLab { against, kept, .. } = hooks;
    let mut not_as_meant = against.or_else(|| lab.against_left_out(&outcome.left_out));
    let io = lab.io()? - before;
    if not_as_meant.is_none()
        && outcome.ready_at.is_some()
        && let Some(needed) = needed
        && let Coldness::Lukewarm { reason, .. } = slowpath_lab::check_bytes(needed, io.bytes)
    {
        not_as_meant = Some(format!("lukewarm: {reason}"));
    }
    Ok(LaunchInLab { outcome, io, not_as_meant, kept })
}

/// A warm launch: the same launch again and again on the same mounted file system, until one reads nothing more from
/// the device; that one counts. What is selected is what was read, never how long it took. Where a launch before it has `kept` what it
/// read, the first one may be it. `known`: pages that launches are known to read, which are in memory before the first that may count: a
/// launch that was ended when it was ready, or had a plan, has not read them all. What is in memory after one that did not count is known
/// from then on.
///
/// # Errors
/// The lab or the launch failed.
pub fn warm<Guard, E: From<LabLaunchError>>(
    lab: &Lab,
    launcher: &mut dyn Launcher,
    mut spec: impl FnMut() -> Result<(LaunchSpec, Guard), E>,
    hooks: &mut dyn Hooks,
    kept: Option<KeptMounted>,
    known: &mut Vec<PageRun>,
) -> Result<LaunchInLab, E> {
    let mut launches = usize::from(kept.is_some());
    let most = launches + WARM_LAUNCHES;
    let kept = match kept {
        Some(kept) => kept,
        None => {
            lab.prepare_cold().map_err(LabLaunchError::from)?;
            lab.keep_mounted().map_err(LabLaunchError::from)?
        }
    };
    loop {
        // Not before the first of all: like the others, it is to fault in its pages, and to load inodes and directories, of which `known`
        // says nothing.
        if launches == 1 {
            lab.read_into_memory(&kept, known, || hooks.stop_requested()).map_err(LabLaunchError::from)?;
        }
        let before = lab.io().map_err(LabLaunchError::from)?;
        let (spec, _guard) = spec()?;
        let mut hooks = InLab::new(lab, &spec, false, hooks);
        let outcome = launcher.launch(&in_lab(lab, spec), &mut hooks).map_err(LabLaunchError::from)?;
        let io = lab.io().map_err(LabLaunchError::from)? - before;
        launches += 1;
        let is_warm = launches > 1 && io.bytes <= WARM_ALLOWANCE;
        if !is_warm {
            known.extend(lab.in_memory(&kept).map_err(LabLaunchError::from)?);
            *known = PageRun::joined(std::mem::take(known));
        }
        if is_warm || launches == most || outcome.ready_at.is_none() {
            let not_as_meant = (!is_warm)
                .then(|| format!("not warm: launch {launches} still read {} bytes from the device", io.bytes.0));
            return Ok(LaunchInLab { outcome, io, not_as_meant, kept: Some(kept) });
        }
    }
}

/// A warm launch may read this much: 256 KiB, two readahead windows, for what a launch does that the one before did
/// not (a random choice, a cache entry that expired).
pub const WARM_ALLOWANCE: Bytes = Bytes(256 << 10);
/// Launches in a row until one reads no more; a launch that is ended when it is ready leaves some reading undone.
const WARM_LAUNCHES: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_lab::{Closure, DEFAULT_BASE, Image, Settings};
    use slowpath_launch::{Identity, mock};
    use slowpath_tables::Pages;
    use std::path::Path;

    /// Reads the same pages in each launch.
    struct Reads<'a> {
        lab: &'a Lab,
        pages: Vec<PageRun>,
        launches: usize,
    }

    impl Launcher for Reads<'_> {
        fn launch(&mut self, _: &LaunchSpec, _: &mut dyn Hooks) -> Result<LaunchOutcome, LaunchError> {
            let mount = self.lab.keep_mounted().unwrap();
            self.lab.read_into_memory(&mount, &self.pages, || false).unwrap();
            self.launches += 1;
            Ok(mock::ready_after(1))
        }
    }

    #[test]
    fn a_launch_is_repeated_until_it_reads_no_more_and_what_is_known_need_not_be_read_by_one() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: needs root for loop devices and mounts");
            return;
        }
        // Larger than what is allowed of a warm launch.
        let (program, script) = (Path::new("/usr/bin/python3"), std::fs::canonicalize("/usr/bin/python3").unwrap());
        let image = Image::build(&Closure::from_paths([program]), Path::new(DEFAULT_BASE), Vec::new()).unwrap();
        let lab = Lab::new(image, Settings::default()).unwrap();
        let file = lab.file_key(&script).unwrap();
        let pages = vec![PageRun { file, first: Pages(0), pages: Pages(1000) }];
        let launches = |known: &mut Vec<PageRun>, is_kept: bool| {
            lab.prepare_cold().unwrap();
            let kept = is_kept.then(|| lab.keep_mounted().unwrap());
            let mut launcher = Reads { lab: &lab, pages: pages.clone(), launches: 0 };
            let spec = || {
                Ok::<_, LabLaunchError>((
                    LaunchSpec::new(vec!["x".into()], Identity::of_caller().unwrap(), Vec::new()),
                    (),
                ))
            };
            let mut hooks = slowpath_launch::NoHooks;
            let launched = warm(&lab, &mut launcher, spec, &mut hooks, kept, known).unwrap();
            assert_eq!((launched.not_as_meant, launched.io.bytes), (None, Bytes(0)));
            launcher.launches
        };
        assert_eq!(launches(&mut pages.clone(), true), 1);
        let mut learnt = Vec::new();
        assert_eq!(launches(&mut learnt, true), 2);
        assert_eq!(launches(&mut learnt, true), 1);
        // The first of all does not count, whatever is known.
        assert_eq!(launches(&mut pages.clone(), false), 2);
    }
}
