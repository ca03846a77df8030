//! The change from the launcher's user to the target's: everything that the target of another user must not have of the launcher
//! is left behind here, and read back where the kernel reports it.
//!
//! Owns terminal, file mode mask, descriptors, credentials and keys. Deliberately inherited, because who starts the launch decides on
//! it: scheduling, CPUs, cgroups, the OOM score, limits ([`LaunchSpec::limits`]), securebits, and the label of a
//! security module, whose policy decides what an exec makes of it.

use std::io;
use std::os::fd::RawFd;

use nix::sys::signal::{Signal, killpg};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, geteuid, setsid};
use slowpath_process::{CredentialsError, drop_keeping};

use crate::{ContextStep, LaunchSpec, SetupStage, context_step, sys};

/// What others may not do to files that a target makes (sudoers(5), `umask`).
const NOT_FOR_OTHERS: Mode = Mode::from_bits_truncate(0o022);

/// Whether the target runs as another user than this process.
pub(super) fn is_another(spec: &LaunchSpec) -> bool {
    geteuid().as_raw() != spec.identity.uid
}

/// Whether the target may use the observer's memory until its exec. Another user's may not: from its change of user on he can kill it,
/// also while it has the heap's lock, and where a setting of the machine allows it, look and write into it.
pub(super) fn may_share_memory(spec: &LaunchSpec) -> bool {
    !is_another(spec) && !spec.context.iter().any(ContextStep::changes_memory)
}

/// A session of its own where one is asked for, and for another user always: a terminal takes typed text (`TIOCSTI`) from the processes
/// of its own session only.
pub(super) fn take_session(spec: &LaunchSpec) -> Result<(), (SetupStage, io::Error)> {
    if spec.session || is_another(spec) {
        setsid().map_err(|error| (SetupStage::Session, error.into()))?;
    }
    Ok(())
}

/// The file mode mask.
pub(super) fn take_mask(spec: &LaunchSpec) {
    if let Some(mask) = spec.umask {
        umask(Mode::from_bits_truncate(mask));
    } else if is_another(spec) {
        let callers = umask(NOT_FOR_OTHERS);
        umask(callers | NOT_FOR_OTHERS);
    }
}

/// Ctrl-C at a terminal goes to the processes of its session alone: where the target has left it for being another user's, the launcher
/// passes it on.
pub(super) fn interrupt(spec: &LaunchSpec, target: i32) {
    if is_another(spec) {
        // Its group is its own (`take_session`); gone, it needs none.
        let _ = killpg(Pid::from_raw(target), Signal::SIGINT);
    }
}

/// Takes on the identity for good. Another user's target keeps no descriptor above standard error but `kept`, and until its exec nobody
/// but root looks into it: it still has the launcher's memory, in a copy.
pub(super) fn take_identity(spec: &LaunchSpec, kept: &mut [RawFd]) -> io::Result<()> {
    let is_another = is_another(spec);
    if is_another {
        sys::shield()?;
        sys::close_all_but(kept);
    }
    drop_keeping(&spec.identity.credentials(), context_step::kept_capabilities(&spec.context)).map_err(|error| {
        match error {
            CredentialsError::Refused { source, .. } => source,
            CredentialsError::NoId(_) => io::Error::from_raw_os_error(libc::EINVAL),
            CredentialsError::NotTaken { .. } => io::Error::from_raw_os_error(libc::EPERM),
        }
    })?;
    if is_another {
        // The kernel sets it anew with each change of user, to what /proc/sys/fs/suid_dumpable says.
        sys::shield()?;
        sys::leave_session_keyring()?;
    }
    Ok(())
}
