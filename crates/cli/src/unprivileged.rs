//! Runs a piece of work as the user it concerns: a forked child drops to that identity for good, works, and sends its
//! result back as JSON. Everything that parses foreign data (ELF, Parquet, plans) or writes output runs here, so
//! nothing of it is done as root for another user.

use crate::failure::{Failure, Kind};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, geteuid, getppid, pipe, setgroups, setresgid, setresuid};
use serde::Serialize;
use serde::de::DeserializeOwned;
use slowpath_launch::Identity;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::marker::PhantomData;

/// Runs `work` as `identity`; in this very process when it has that identity already.
///
/// # Errors
/// What `work` returns, or that the identity could not be taken on.
pub fn as_user<T: Serialize + DeserializeOwned>(
    identity: &Identity,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if is_own(identity) { work() } else { Worker::start(identity, work)?.wait() }
}

fn is_own(identity: &Identity) -> bool {
    geteuid().as_raw() == identity.uid
}

/// A piece of work that is under way in a process of its own, which ends with this value.
pub struct Worker<T> {
    child: Pid,
    is_reaped: bool,
    reader: File,
    bytes: Vec<u8>,
    user: String,
    result: PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> Worker<T> {
    /// Begins `work` as `identity`.
    ///
    /// # Errors
    /// No process could be started.
    pub fn start(identity: &Identity, work: impl FnOnce() -> Result<T, Failure>) -> Result<Self, Failure> {
        let (reader, writer) = pipe().map_err(|error| broken(&identity.user, "pipe", &error))?;
        let parent = nix::unistd::getpid();
        // SAFETY: this process has one thread (no library used here starts any), so the child may do anything.
        match unsafe { fork() }.map_err(|error| broken(&identity.user, "fork", &error))? {
            ForkResult::Child => {
                drop(reader);
                let entered = enter(identity, parent).map_err(|error| broken(&identity.user, "identity", &error));
                let result = entered.and_then(|()| work());
                let sent = serde_json::to_vec(&result).is_ok_and(|bytes| File::from(writer).write_all(&bytes).is_ok());
                // SAFETY: ends the child without running the parent's destructors.
                unsafe { libc::_exit(i32::from(!sent)) }
            }
            ForkResult::Parent { child } => Ok(Self {
                child,
                is_reaped: false,
                reader: File::from(reader),
                bytes: Vec::new(),
                user: identity.user.clone(),
                result: PhantomData,
            }),
        }
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.child.as_raw().unsigned_abs()
    }

    /// The result, once there is one; never waits for it.
    pub fn poll(&mut self) -> Option<Result<T, Failure>> {
        if let Err(error) = fcntl(&self.reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)) {
            return Some(Err(broken(&self.user, "result", &error)));
        }
        match self.reader.read_to_end(&mut self.bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            read => Some(self.end(read)),
        }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// What the work returns, or that it ended without a result.
    pub fn wait(mut self) -> Result<T, Failure> {
        let read = self.reader.read_to_end(&mut self.bytes);
        self.end(read)
    }

    fn end(&mut self, read: std::io::Result<usize>) -> Result<T, Failure> {
        let status = waitpid(self.child, None);
        self.is_reaped = true;
        read.map_err(|error| broken(&self.user, "result", &error))?;
        serde_json::from_slice::<Result<T, Failure>>(&self.bytes).unwrap_or_else(|error| {
            Err(broken(&self.user, "the worker ended without a result", &format!("{error} ({status:?})")))
        })
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        if !self.is_reaped {
            let _ = kill(self.child, Signal::SIGKILL);
            let _ = waitpid(self.child, None);
        }
    }
}

fn broken(user: &str, context: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Kind::Machine, format!("work as user {user} failed: {context}: {error}"))
}

/// Takes on the identity, and gives up every privilege for good.
///
/// # Errors
/// The system refuses.
pub fn take_on(identity: &Identity) -> nix::Result<()> {
    if is_own(identity) {
        return Ok(());
    }
    let groups: Vec<Gid> = identity.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    setgroups(&groups)?;
    let gid = Gid::from_raw(identity.gid);
    setresgid(gid, gid, gid)?;
    let uid = Uid::from_raw(identity.uid);
    setresuid(uid, uid, uid)
}

/// The same, and ends with `parent`.
fn enter(identity: &Identity, parent: Pid) -> nix::Result<()> {
    take_on(identity)?;
    // A change of identity forgets it, so it comes after.
    set_pdeathsig(Signal::SIGKILL)?;
    if getppid() == parent { Ok(()) } else { Err(nix::errno::Errno::ESRCH) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Identity {
        let variables = std::env::vars_os().collect::<Vec<_>>();
        let borrowed = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        Identity::for_invocation(None, borrowed).unwrap().0
    }

    #[test]
    fn work_under_way_is_asked_for_without_waiting_and_ends_with_its_value() {
        let (gate, opener) = pipe().unwrap();
        let mut worker = Worker::start(&me(), move || {
            let mut byte = [0];
            let _ = File::from(gate).read(&mut byte);
            Ok(u32::from(byte[0]))
        })
        .unwrap();
        assert!(worker.poll().is_none());
        File::from(opener).write_all(&[7]).unwrap();
        let told = loop {
            match worker.poll() {
                Some(told) => break told,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(told.unwrap(), 7);
        let child = {
            let idle = Worker::start(&me(), || {
                std::thread::sleep(std::time::Duration::from_secs(600));
                Ok(())
            });
            idle.unwrap().child
        };
        assert!(kill(child, None).is_err(), "the worker outlived its value");
    }
}
