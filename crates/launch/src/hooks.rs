//! What a caller can do while a launch runs, and the interface of everything that can launch.

use crate::{BoxError, LaunchError, LaunchOutcome, LaunchSpec};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Called by a [`Launcher`] on the thread that called [`Launcher::launch`]. Every method has a default that does
/// nothing, so that an implementation names only what it needs.
pub trait Hooks {
    /// Whether the launch is to be followed as it happens. With false, [`Self::before_release`], [`Self::on_released`]
    /// and [`Self::on_ready`] are not called: nobody waits for the caller between fork and exec, and nothing wakes the
    /// caller while the clock runs. For launches that are only timed.
    fn follows(&self) -> bool {
        true
    }

    /// The caller's end of the socket of [`LaunchSpec::devtools`], before the target exists. For the target the conversation ends when
    /// it is dropped.
    fn on_devtools(&mut self, socket: OwnedFd) {
        drop(socket);
    }

    /// The target exists under `pid` (in the pid namespace of the caller), has its identity, cgroups, mounts,
    /// working directory and environment, and waits just before `execve`. Events opened on `pid` with
    /// `enable_on_exec` see the command from its first instruction. The clock has not started: this may take long.
    ///
    /// # Errors
    /// An error gives the launch up; the target is killed before it ran an instruction of the command.
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        let _ = pid;
        Ok(())
    }

    /// The target was released at `at` (`CLOCK_MONOTONIC`, ns).
    fn on_released(&mut self, at: u64) {
        let _ = at;
    }

    /// About every 20 ms while the launch runs: the place to drain ring buffers. Keep it short.
    fn on_tick(&mut self) {}

    /// A descriptor that becomes readable when [`Self::on_wake`] is to be called without waiting for the next tick.
    fn wakes(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// What [`Self::wakes`] gave is readable; it must not be afterwards.
    fn on_wake(&mut self) {}

    /// The target was ready at `at` (`CLOCK_MONOTONIC`, ns). With [`crate::EndPolicy::WaitExit`] it goes on.
    fn on_ready(&mut self, at: u64) {
        let _ = at;
    }

    /// Asked about every 20 ms: true when ctrl-C was pressed at the caller's terminal since it was asked last. A target of another user
    /// has no part in that terminal, and gets it passed on; any other has got it from the kernel already.
    fn interrupted(&mut self) -> bool {
        false
    }

    /// Asked about every 20 ms: true ends the launch as [`crate::EndPolicy`] says, with
    /// [`crate::StopReason::Requested`] (ctrl-C, `--duration`).
    fn stop_requested(&self) -> bool {
        false
    }
}

/// Hooks that do nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn follows(&self) -> bool {
        false
    }
}

/// Something that can run one launch: [`crate::ProcessLauncher`], or what a test has in its place.
pub trait Launcher {
    /// Runs one launch and returns when it ended as `spec.end` says. With [`crate::EndPolicy::KillTree`] every
    /// process of the tree is gone by then.
    ///
    /// # Errors
    /// A target that ran but did not become ready is **not** an error: see [`LaunchOutcome::stop`] and
    /// [`LaunchOutcome::require_ready`]. Errors are everything that kept the launch from being one: a setup step, the
    /// exec itself, a hook, a launcher that was killed, a tree that could not be ended.
    fn launch(&mut self, spec: &LaunchSpec, hooks: &mut dyn Hooks) -> Result<LaunchOutcome, LaunchError>;
}
