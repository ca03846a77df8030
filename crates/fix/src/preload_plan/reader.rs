//! Who reads a plan beside a command, and what that process may do. No privilege helps with reading ahead, and a plan may come from anybody.
//!
//! Owns that choice for the prefetcher, which the small program starts, too. Leaves whom root works for to `slowpath_process`. A process
//! without privilege stays what it is, as in `slowpath_session::unprivileged`: the code that makes a filter would be one more thing to read
//! before a cold command; and root that works for itself is not looked up, for the same reason.

use nix::sys::prctl::set_no_new_privs;
use nix::unistd::{geteuid, getppid};
use slowpath_process::{
    Capabilities, Credentials, CredentialsError, Duty, Identity, IdentityError, Sandbox, SandboxError, close_all_but,
    drop_to,
};
use std::ffi::OsStr;
use std::io;
use std::os::fd::RawFd;

/// Why nobody reads the plan.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReaderError {
    /// What sudo left names no user, or the user database cannot be read.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A step was refused.
    #[error("{step} failed")]
    Refused {
        /// Which.
        step: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The identity was not taken on.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The process is not what it should be.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

pub(super) fn refused<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> ReaderError {
    move |source| ReaderError::Refused { step, source: source.into() }
}

/// What the process that reads a plan is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// The caller, who has no privilege.
    AsItIs,
    /// This user, confined.
    Confined(Credentials),
}

impl Reader {
    /// For this process: who called sudo, or root for itself.
    ///
    /// # Errors
    /// What sudo left names no user, or the user database cannot be read.
    pub(super) fn of_this_process() -> Result<Self, ReaderError> {
        let variables: Vec<_> = std::env::vars_os().collect();
        Self::of_process_with(variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())))
    }

    fn of_process_with<'a>(env: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>) -> Result<Self, ReaderError> {
        if let Some(identity) = Identity::behind_root(env)? {
            return Ok(Self::Confined(identity.credentials()));
        }
        // File capabilities, ambient ones.
        if geteuid().is_root() || !Capabilities::of_this_thread().map_err(refused("capget"))?.is_empty() {
            return own();
        }
        Ok(Self::AsItIs)
    }

    /// Takes on the identity for good, before anything that a user may have made is opened. Root keeps its capabilities until it is confined:
    /// it named these files itself.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn take_on(&self) -> Result<(), ReaderError> {
        match self {
            Self::AsItIs => Ok(()),
            Self::Confined(credentials) => Ok(drop_to(credentials)?),
        }
    }

    /// Leaves the process, a fresh fork that took the identity on, these descriptors beside the standard ones, and no privilege but root's
    /// user id where it is root's: root's files are to be read ahead, too, those of others only where everybody may read them.
    ///
    /// # Errors
    /// A step failed: the process has to end.
    pub(super) fn confine(&self, kept: &[RawFd]) -> Result<(), ReaderError> {
        let Self::Confined(credentials) = self else {
            set_no_new_privs().map_err(refused("no_new_privs"))?;
            return close_all_but(kept).map_err(refused("closing descriptors"));
        };
        if credentials.uid == 0 {
            Capabilities::keep_only(0).map_err(refused("capset"))?;
        }
        // Its parent ends at once, and it goes on beside the command.
        Ok(Sandbox::new(credentials.clone(), Duty::Read).outliving().enter(getppid(), kept)?)
    }
}

fn own() -> Result<Reader, ReaderError> {
    Credentials::of_this_process().map(Reader::Confined).map_err(refused("getgroups"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sudo_left_and_names_no_user_is_said_as_it_is_everywhere() {
        let env = [(OsStr::new("SUDO_UID"), OsStr::new("4294967295"))];
        let said = Reader::of_process_with(env).map_err(|error| error.to_string());
        match geteuid().is_root() {
            true => assert_eq!(said, Err("SUDO_UID is `4294967295`, which names no user".to_owned())),
            false => assert!(said.is_ok()),
        }
    }
}
