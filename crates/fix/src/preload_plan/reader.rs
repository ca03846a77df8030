//! Who reads a plan beside a command, and what that process may do. No privilege helps with reading ahead, and a plan may come from anybody.
//!
//! Owns that choice for the prefetcher, which the small program starts, too: so it knows who called sudo without the launcher's library
//! (`slowpath_launch::Identity`, whose rules these are). A process without privilege stays what it is, as in
//! `slowpath_session::unprivileged`: the code that makes a filter would be one more thing to read before a cold command.

use nix::sys::prctl::set_no_new_privs;
use nix::unistd::{Gid, Uid, User, getegid, geteuid, getgrouplist, getgroups, getppid, getuid};
use slowpath_process::{
    Capabilities, Credentials, CredentialsError, Duty, NO_ID, NOBODY, Sandbox, SandboxError, close_all_but, drop_to,
};
use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;

/// Variables in which programs that make their caller root leave who that was: sudo(8), pkexec(1), doas(1). Of several the first counts.
const INVOKERS: [&str; 3] = ["SUDO_UID", "PKEXEC_UID", "DOAS_USER"];

/// Why nobody reads the plan.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReaderError {
    /// What sudo left names no user.
    #[error("{name} is `{value}`, which names no user")]
    BadInvoker {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
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
        if geteuid().is_root() {
            // Who became root by a set-user-ID file works for its real user.
            return match (getuid(), invoker()) {
                (real, _) if !real.is_root() => of_uid(real),
                (_, Some((name, value))) => named(name, value),
                (_, None) => own(),
            }
            .map(Self::Confined);
        }
        // File capabilities, ambient ones.
        match Capabilities::of_this_thread().map_err(refused("capget"))?.is_empty() {
            true => Ok(Self::AsItIs),
            false => own().map(Self::Confined),
        }
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

fn invoker() -> Option<(&'static str, String)> {
    INVOKERS.into_iter().find_map(|name| Some((name, std::env::var_os(name)?.to_string_lossy().into_owned())))
}

fn named(name: &'static str, value: String) -> Result<Credentials, ReaderError> {
    let uid = match name {
        "DOAS_USER" => User::from_name(&value).map_err(refused(DATABASE))?.map(|user| user.uid),
        _ => value.parse().ok().filter(|uid| *uid != NO_ID).map(Uid::from_raw),
    };
    uid.map_or_else(|| Err(ReaderError::BadInvoker { name, value }), of_uid)
}

const DATABASE: &str = "a look into the user database";

/// With the groups of the user database; where that does not know it, as nobody's group and with no others.
fn of_uid(uid: Uid) -> Result<Credentials, ReaderError> {
    let Some(user) = User::from_uid(uid).map_err(refused(DATABASE))? else {
        return Ok(Credentials { uid: uid.as_raw(), gid: NOBODY, groups: Vec::new() });
    };
    let name = CString::new(user.name).map_err(refused(DATABASE))?;
    let groups = getgrouplist(&name, user.gid).map_err(refused(DATABASE))?;
    Ok(Credentials { uid: uid.as_raw(), gid: user.gid.as_raw(), groups: groups.into_iter().map(Gid::as_raw).collect() })
}

fn own() -> Result<Credentials, ReaderError> {
    let groups = getgroups().map_err(refused("getgroups"))?;
    Ok(Credentials {
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
        groups: groups.into_iter().map(Gid::as_raw).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_called_sudo_is_a_user_with_the_groups_of_the_database_and_never_the_id_that_means_unchanged() {
        let nobody = named("SUDO_UID", "65534".to_owned()).unwrap();
        assert_eq!(nobody.uid, 65534);
        let unknown = named("PKEXEC_UID", "3999999999".to_owned()).unwrap();
        assert_eq!(unknown, Credentials { uid: 3_999_999_999, gid: NOBODY, groups: Vec::new() });
        assert_eq!(named("DOAS_USER", "root".to_owned()).unwrap().uid, 0);
        for (name, value) in
            [("SUDO_UID", "4294967295"), ("SUDO_UID", "-1"), ("SUDO_UID", ""), ("DOAS_USER", "no such user")]
        {
            let refused = named(name, value.to_owned()).unwrap_err().to_string();
            assert_eq!(refused, format!("{name} is `{value}`, which names no user"));
        }
    }
}
