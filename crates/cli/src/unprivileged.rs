//! Runs a piece of work as the user it concerns: a forked child drops to that identity for good, works, and sends its
//! result back as JSON. Everything that parses foreign data (ELF, Parquet, plans) or writes output runs here, so
//! nothing of it is done as root for another user.

use crate::failure::{Failure, Kind};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Gid, Uid, fork, geteuid, pipe, setgroups, setresgid, setresuid};
use serde::Serialize;
use serde::de::DeserializeOwned;
use slowpath_launch::Identity;
use std::fs::File;
use std::io::{Read, Write};

/// Runs `work` as `identity`; in this very process when it has that identity already.
///
/// # Errors
/// What `work` returns, or that the identity could not be taken on.
pub fn as_user<T: Serialize + DeserializeOwned>(
    identity: &Identity,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if geteuid().as_raw() == identity.uid {
        return work();
    }
    let broken = |context: &str, error: &dyn std::fmt::Display| {
        Failure::new(Kind::Machine, format!("work as user {} failed: {context}: {error}", identity.user))
    };
    let (reader, writer) = pipe().map_err(|error| broken("pipe", &error))?;
    // SAFETY: this process has one thread (no library used here starts any), so the child may do anything.
    match unsafe { fork() }.map_err(|error| broken("fork", &error))? {
        ForkResult::Child => {
            drop(reader);
            let result = drop_to(identity).map_err(|error| broken("identity", &error)).and_then(|()| work());
            let sent = serde_json::to_vec(&result).is_ok_and(|bytes| File::from(writer).write_all(&bytes).is_ok());
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(i32::from(!sent)) }
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let mut bytes = Vec::new();
            let read = File::from(reader).read_to_end(&mut bytes);
            let status = waitpid(child, None);
            read.map_err(|error| broken("result", &error))?;
            serde_json::from_slice::<Result<T, Failure>>(&bytes).unwrap_or_else(|error| {
                Err(broken("the worker ended without a result", &format!("{error} ({status:?})")))
            })
        }
    }
}

/// Gives up every privilege for good.
fn drop_to(identity: &Identity) -> nix::Result<()> {
    let groups: Vec<Gid> = identity.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    setgroups(&groups)?;
    let gid = Gid::from_raw(identity.gid);
    setresgid(gid, gid, gid)?;
    let uid = Uid::from_raw(identity.uid);
    setresuid(uid, uid, uid)
}
