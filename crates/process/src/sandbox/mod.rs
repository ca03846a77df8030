//! What a process is reduced to before it touches foreign bytes.
//!
//! A [`Sandbox`] says for whom and for what kind of work; [`Sandbox::enter`] makes it so, in this order, and an error anywhere means that
//! no work is done:
//!
//! 1. standard input is `/dev/null`; every descriptor goes that was not named, and every shared mapping: the lab's image, loop devices,
//!    BPF objects, events, channels to privileged processes;
//! 2. a session of its own, so that no terminal is its controlling one;
//! 3. limits of memory, files and core dumps;
//! 4. `no_new_privs`, then the identity, read back ([`crate::drop_to`]). Root's own work keeps root's user id and of the capabilities only
//!    those that pass over the permissions of files; see [`Duty`];
//! 5. not dumpable, so that nobody with the same user id can trace it or write into it; it ends with its parent;
//! 6. where files are written, Landlock says beneath which directories; a seccomp filter says which system calls there are.

mod before_exec;
mod calls;
mod descriptors;
mod duty;
mod error;
mod filter;
mod landlock;
mod limits;

pub use before_exec::{become_before_exec, reduce_before_exec};
pub use descriptors::{Printing, close_all_but};
pub use duty::Duty;
pub use error::SandboxError;
pub use landlock::WritablePlace;

use crate::{Capabilities, Credentials, drop_to};
use error::refused;
use nix::sys::prctl::{set_dumpable, set_no_new_privs, set_pdeathsig};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{Pid, getppid, setsid};
use std::os::fd::RawFd;

/// What a worker is reduced to.
#[derive(Clone, Debug)]
pub struct Sandbox {
    credentials: Credentials,
    duty: Duty,
    printing: Printing,
    places: Option<Vec<WritablePlace>>,
    outlives: bool,
}

impl Sandbox {
    /// For this kind of work as this user. It prints to the terminal unless it parses; it ends with its parent.
    pub fn new(credentials: Credentials, duty: Duty) -> Self {
        let printing = if duty == Duty::Parse { Printing::Nowhere } else { Printing::Terminal };
        Self { credentials, duty, printing, places: None, outlives: false }
    }

    /// It prints nothing.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.printing = Printing::Nowhere;
        self
    }

    /// It changes files only in these places, where the kernel has Landlock. It can look at no other process then (what ptrace(2) calls a
    /// read access).
    #[must_use]
    pub fn writing_in(mut self, places: impl IntoIterator<Item = WritablePlace>) -> Self {
        self.places = Some(places.into_iter().collect());
        self
    }

    /// It ends when its work does, also after its parent, and no signal of a terminal or of a service manager ends it.
    #[must_use]
    pub fn outliving(mut self) -> Self {
        self.outlives = true;
        self
    }

    /// Whether it ends with its parent.
    pub(crate) fn ends_with_parent(&self) -> bool {
        !self.outlives
    }

    /// Reduces the calling process, a fresh fork of `parent`, for good. `kept` are the descriptors that it needs beside the standard ones.
    ///
    /// # Errors
    /// A step failed: the process has to end.
    pub fn enter(&self, parent: Pid, kept: &[RawFd]) -> Result<(), SandboxError> {
        descriptors::set_standard(self.printing).map_err(refused("replacing standard streams"))?;
        descriptors::close_all_but(kept).map_err(refused("closing descriptors"))?;
        descriptors::unmap_shared().map_err(refused("removing shared memory"))?;
        self.leave_terminal()?;
        limits::set(self.duty).map_err(refused("setting limits"))?;
        set_no_new_privs().map_err(refused("no_new_privs"))?;
        drop_to(&self.credentials)?;
        self.reduce_capabilities()?;
        set_dumpable(false).map_err(refused("PR_SET_DUMPABLE"))?;
        if !self.outlives {
            // A change of identity forgets it, so it comes after.
            set_pdeathsig(Signal::SIGKILL).map_err(refused("PR_SET_PDEATHSIG"))?;
            if getppid() != parent {
                return Err(SandboxError::Orphan);
            }
        }
        if let Some(places) = &self.places {
            landlock::write_only_in(places).map_err(refused("Landlock"))?;
        }
        filter::restrict(self.duty)
    }

    /// Without a controlling terminal nothing can be put into its input, and its keys send no signals here. A parser has no terminal's
    /// descriptor and opens none; what measures is to be scheduled as a target is, and a new session has a share of the CPUs of its
    /// own (CONFIG_SCHED_AUTOGROUP). For these two keys are ignored where they end something.
    fn leave_terminal(&self) -> Result<(), SandboxError> {
        let ends: &[Signal] = match (self.outlives, self.duty) {
            (true, _) => &[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP],
            (false, Duty::Parse) => &[Signal::SIGINT],
            (false, _) => &[],
        };
        for one in ends {
            // SAFETY: ignoring a signal runs no code of ours.
            unsafe { signal(*one, SigHandler::SigIgn) }.map_err(refused("ignoring a signal"))?;
        }
        if !matches!(self.duty, Duty::Parse | Duty::Measure) {
            setsid().map_err(refused("setsid"))?;
        }
        Ok(())
    }

    /// Leaves root's own work what passes over the permissions of files. For others [`drop_to`] leaves nothing.
    fn reduce_capabilities(&self) -> Result<(), SandboxError> {
        if self.credentials.uid != 0 {
            return Ok(());
        }
        let wanted = match self.duty {
            Duty::Parse | Duty::Measure => 0,
            Duty::Read => Capabilities::DAC_READ_SEARCH,
            Duty::Write | Duty::Browse | Duty::Run => Capabilities::DAC_READ_SEARCH | Capabilities::DAC_OVERRIDE,
        };
        Capabilities::keep_only(wanted).map_err(refused("capset"))
    }
}
