//! What a process gives up before it becomes another program, which handles foreign bytes and needs no privilege.

use super::descriptors;
use super::error::{SandboxError, refused};
use crate::{Capabilities, Credentials, drop_to};
use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, getppid, setsid};

/// Reduces the calling thread for the program that it executes next: `no_new_privs`, the identity, read back; root keeps root's user id and
/// of the capabilities only `CAP_DAC_READ_SEARCH`, to read the data of others. Descriptors from 3 on close at the exec, and files that the
/// program makes are its user's alone.
///
/// An exec gives user id 0 all capabilities of the bounding set; `no_new_privs` holds it to those that the thread has (capabilities(7)).
///
/// # Errors
/// A step failed: nothing may be executed then.
pub fn reduce_before_exec(credentials: &Credentials) -> Result<(), SandboxError> {
    set_no_new_privs().map_err(refused("no_new_privs"))?;
    drop_to(credentials)?;
    if credentials.uid == 0 {
        Capabilities::keep_only(Capabilities::DAC_READ_SEARCH).map_err(refused("capset"))?;
    }
    descriptors::close_on_exec().map_err(refused("closing descriptors at exec"))?;
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    Ok(())
}

/// Makes the calling thread, a fresh fork of `parent`, the user's for the program that it executes next: a session of its own,
/// `no_new_privs`, the identity, read back, with no capability unless it is root's. Descriptors from 3 on close at the exec, files that the
/// program makes can be read by others (umask 022), and it ends with the thread that forked it.
///
/// # Errors
/// A step failed: nothing may be executed then.
pub fn become_before_exec(credentials: &Credentials, parent: Pid) -> Result<(), SandboxError> {
    setsid().map_err(refused("setsid"))?;
    set_no_new_privs().map_err(refused("no_new_privs"))?;
    drop_to(credentials)?;
    descriptors::close_on_exec().map_err(refused("closing descriptors at exec"))?;
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    // A change of identity forgets it, so it comes after.
    set_pdeathsig(Signal::SIGKILL).map_err(refused("PR_SET_PDEATHSIG"))?;
    if getppid() == parent { Ok(()) } else { Err(SandboxError::Orphan) }
}
