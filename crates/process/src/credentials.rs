//! Giving up privilege: groups, group, user and capabilities, each read back from the kernel afterwards.
//!
//! A drop that fails half way, or that the kernel takes for something else, is worse than none: the work that follows
//! would run as root. So [`drop_to`] returns `Ok` only after [`verify`] saw every id and an attempt to become root again
//! was refused.

use crate::Capabilities;
use crate::groups::own_groups;
use nix::errno::Errno;
use nix::unistd::{Gid, Uid, getegid, geteuid, getresgid, getresuid, setgroups, setresgid, setresuid};
use std::io;

/// 2^32-1: to setresuid(2) and setresgid(2) it means "leave unchanged", so it names nobody.
pub const NO_ID: u32 = u32::MAX;

/// The kernel's overflow user and group (Documentation/admin-guide/sysctl/fs.rst, `overflowuid`).
pub const NOBODY: u32 = 65534;

/// Who a process is to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Real, effective and saved user id.
    pub uid: u32,
    /// Real, effective and saved group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// Why privilege was not given up. The process that gets one must not go on.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The id means "unchanged" to the kernel.
    #[error("{0} is no id: to setresuid(2) it means \"unchanged\"")]
    NoId(u32),
    /// A system call was refused.
    #[error("{call} failed")]
    Refused {
        /// Which.
        call: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What the kernel says afterwards is not what was asked for.
    #[error("the kernel has {what} after the drop")]
    NotTaken {
        /// What it has instead.
        what: String,
    },
}

fn refused(call: &'static str) -> impl FnOnce(Errno) -> CredentialsError {
    move |errno| CredentialsError::Refused { call, source: errno.into() }
}

/// Takes on `wanted` for good. For every user but root no capability is left in any set, bounding set excepted (it grants
/// nothing by itself and `no_new_privs` is the caller's to set).
///
/// A process that has these credentials already, and no capabilities, may call this too: nothing is changed then.
///
/// # Errors
/// The kernel refuses a part, or does not show what was asked for. The process may be half way: it has to end.
pub fn drop_to(wanted: &Credentials) -> Result<(), CredentialsError> {
    drop_keeping(wanted, Capabilities::default())
}

/// The same, but a user who is not root has `kept` afterwards, and nothing else. For a target that was asked to have
/// ambient capabilities, by name.
///
/// # Errors
/// As of [`drop_to`].
pub fn drop_keeping(wanted: &Credentials, kept: Capabilities) -> Result<(), CredentialsError> {
    wanted.validate()?;
    let had = has(wanted)?;
    if had && wanted.uid == 0 {
        return Ok(());
    }
    if !had {
        if !kept.is_empty() {
            // Else the kernel takes all of them with the user id (capabilities(7)); an exec ends it.
            nix::sys::prctl::set_keepcaps(true).map_err(refused("prctl"))?;
        }
        let groups: Vec<Gid> = wanted.groups.iter().copied().map(Gid::from_raw).collect();
        setgroups(&groups).map_err(refused("setgroups"))?;
        let gid = Gid::from_raw(wanted.gid);
        setresgid(gid, gid, gid).map_err(refused("setresgid"))?;
        let uid = Uid::from_raw(wanted.uid);
        setresuid(uid, uid, uid).map_err(refused("setresuid"))?;
    }
    if wanted.uid != 0 {
        // A user id that was not root's keeps its capabilities through setresuid: file capabilities, ambient ones.
        let io = |source| CredentialsError::Refused { call: "capset", source };
        if Capabilities::of_this_thread().map_err(io)? != kept {
            kept.apply().map_err(io)?;
        }
    }
    verify_keeping(wanted, kept)
}

impl Credentials {
    /// The effective ids of this process, and its supplementary groups.
    ///
    /// # Errors
    /// What getgroups(2) says.
    pub fn of_this_process() -> io::Result<Self> {
        Ok(Self { uid: geteuid().as_raw(), gid: getegid().as_raw(), groups: own_groups()? })
    }

    /// Checks that each id names somebody.
    ///
    /// # Errors
    /// [`CredentialsError::NoId`].
    pub fn validate(&self) -> Result<(), CredentialsError> {
        match [self.uid, self.gid].iter().chain(&self.groups).find(|id| **id == NO_ID) {
            Some(id) => Err(CredentialsError::NoId(*id)),
            None => Ok(()),
        }
    }
}

/// Whether the process has exactly these ids, in all their forms.
fn has(wanted: &Credentials) -> Result<bool, CredentialsError> {
    let user = getresuid().map_err(refused("getresuid"))?;
    let group = getresgid().map_err(refused("getresgid"))?;
    let mut own = own_groups().map_err(refused("getgroups"))?;
    let mut groups = wanted.groups.clone();
    own.sort_unstable();
    groups.sort_unstable();
    let users = [user.real, user.effective, user.saved];
    let all_groups = [group.real, group.effective, group.saved];
    Ok(users.iter().all(|id| id.as_raw() == wanted.uid)
        && all_groups.iter().all(|id| id.as_raw() == wanted.gid)
        && own == groups)
}

/// Checks that the process has these credentials, and, unless they are root's, no capability and no way back to root.
///
/// # Errors
/// It has others.
pub fn verify(wanted: &Credentials) -> Result<(), CredentialsError> {
    verify_keeping(wanted, Capabilities::default())
}

fn verify_keeping(wanted: &Credentials, kept: Capabilities) -> Result<(), CredentialsError> {
    if !has(wanted)? {
        let (user, group) = (getresuid().map_err(refused("getresuid"))?, getresgid().map_err(refused("getresgid"))?);
        let what = format!(
            "user {}/{}/{} and group {}/{}/{}",
            user.real, user.effective, user.saved, group.real, group.effective, group.saved
        );
        return Err(CredentialsError::NotTaken { what });
    }
    if wanted.uid == 0 {
        return Ok(());
    }
    let io = |source| CredentialsError::Refused { call: "capget", source };
    let left = Capabilities::of_this_thread().map_err(io)?;
    if left != kept {
        return Err(CredentialsError::NotTaken {
            what: format!("capabilities {:#x}", left.permitted | left.inheritable),
        });
    }
    let root = Uid::from_raw(0);
    match setresuid(root, root, root) {
        // EINVAL: in this user namespace there is no root (setresuid(2)).
        Err(Errno::EPERM | Errno::EINVAL) => Ok(()),
        Err(errno) => Err(refused("setresuid")(errno)),
        Ok(()) => Err(CredentialsError::NotTaken { what: "a return path to root".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork, geteuid};

    /// Runs `work` in a child and returns its exit code.
    fn in_child(work: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the child calls only system calls and `_exit`; what it allocates is its own copy.
        match unsafe { fork() }.unwrap() {
            // SAFETY: ends the child at once.
            ForkResult::Child => unsafe { libc::_exit(work()) },
            ForkResult::Parent { child } => match waitpid(child, None).unwrap() {
                WaitStatus::Exited(_, code) => code,
                other => panic!("{other:?}"),
            },
        }
    }

    #[test]
    fn root_that_becomes_nobody_has_nothing_left_and_no_way_back() {
        if !geteuid().is_root() {
            println!("skipped: only root can become another user");
            return;
        }
        let nobody = Credentials { uid: NOBODY, gid: NOBODY, groups: vec![NOBODY] };
        assert_eq!(in_child(|| i32::from(drop_to(&nobody).is_err())), 0);
        let still_root = Credentials { uid: NOBODY, gid: NOBODY, groups: Vec::new() };
        assert_eq!(in_child(|| i32::from(verify(&still_root).is_ok())), 0, "root passed as nobody");
    }

    #[test]
    fn the_id_that_means_unchanged_is_refused_everywhere() {
        for (uid, gid, group) in [(NO_ID, 1, 1), (1, NO_ID, 1), (1, 1, NO_ID)] {
            let wanted = Credentials { uid, gid, groups: vec![group] };
            assert!(matches!(drop_to(&wanted), Err(CredentialsError::NoId(_))), "{wanted:?}");
        }
    }

    #[test]
    fn a_user_has_exactly_the_capabilities_that_were_to_be_kept() {
        if !geteuid().is_root() {
            println!("skipped: only root can keep capabilities");
            return;
        }
        let code = in_child(|| {
            let nobody = Credentials { uid: NOBODY, gid: NOBODY, groups: Vec::new() };
            // CAP_CHOWN.
            let kept = Capabilities { effective: 0, permitted: 1, inheritable: 1 };
            if drop_keeping(&nobody, kept).is_err() {
                return 1;
            }
            i32::from(Capabilities::of_this_thread().ok() != Some(kept)) * 2 + i32::from(verify(&nobody).is_ok()) * 4
        });
        assert_eq!(code, 0);
    }

    #[test]
    fn a_user_who_keeps_capabilities_loses_them() {
        if !geteuid().is_root() {
            println!("skipped: only root can keep capabilities");
            return;
        }
        let code = in_child(|| {
            // SAFETY: takes integers and touches no memory of ours.
            if unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) } != 0 {
                return 1;
            }
            let nobody = Credentials { uid: NOBODY, gid: NOBODY, groups: Vec::new() };
            if drop_to(&nobody).is_err() {
                return 2;
            }
            i32::from(!Capabilities::of_this_thread().is_ok_and(Capabilities::is_empty)) * 3
        });
        assert_eq!(code, 0);
    }
}
