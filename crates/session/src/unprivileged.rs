//! Runs a piece of work as the user it concerns, in a sandboxed process of its own that sends its result back as JSON
//! (`slowpath_process::Worker`). Everything that parses foreign data (ELF, Parquet, plans) or writes output runs here, so nothing of it
//! is done with privilege, for root's own files neither.

use crate::failure::{Failure, Kind, failed};
use crate::interrupt;
use nix::unistd::geteuid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use slowpath_launch::Identity;
use slowpath_process::{self as process, Credentials, Duty, Sandbox, WorkerError, WritablePlace};
use std::cell::Cell;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long any work may take: an analysis of millions of events takes seconds.
const LIMIT: Duration = Duration::from_secs(3600);

/// How long work goes on after ctrl-C: what is being written is finished where that is quick.
const GRACE: Duration = Duration::from_secs(2);

/// A piece of work: what failures call it, and what its process may do.
#[derive(Clone, Debug)]
pub struct Work {
    name: &'static str,
    duty: Duty,
    places: Option<Vec<WritablePlace>>,
    kept: Vec<RawFd>,
    silent: bool,
    limit: Duration,
}

impl Work {
    /// It does this, and may do that.
    pub fn new(name: &'static str, duty: Duty) -> Self {
        Self { name, duty, places: None, kept: Vec::new(), silent: false, limit: LIMIT }
    }

    /// It reads files.
    pub fn reading(name: &'static str) -> Self {
        Self::new(name, Duty::Read)
    }

    /// It starts programs of the user's.
    pub fn starting_programs(name: &'static str) -> Self {
        Self::new(name, Duty::Run)
    }

    /// It measures, and no filter of a sandbox makes its system calls slower.
    pub fn measuring(name: &'static str) -> Self {
        Self::new(name, Duty::Measure)
    }

    /// It reads files, and writes beneath a directory.
    pub fn writing_beneath(name: &'static str, directory: &Path) -> Self {
        Self { places: Some(vec![WritablePlace::Beneath(directory.to_owned())]), ..Self::new(name, Duty::Write) }
    }

    /// It reads files, and makes or replaces one, where there is one to be made.
    pub fn writing<'a>(name: &'static str, file: impl Into<Option<&'a Path>>) -> Self {
        match file.into() {
            None => Self::reading(name),
            Some(file) => {
                Self { places: Some(vec![WritablePlace::File(file.to_owned())]), ..Self::new(name, Duty::Write) }
            }
        }
    }

    /// It keeps this descriptor, which lives as long as it takes to start.
    #[must_use]
    pub fn keeping(mut self, descriptor: &impl AsFd) -> Self {
        self.kept.push(descriptor.as_fd().as_raw_fd());
        self
    }

    /// It prints its result itself, as slowly as somebody reads that.
    #[must_use]
    pub fn printing(self) -> Self {
        Self { limit: Duration::MAX, ..self }
    }

    /// It prints nothing.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    /// Its sandbox.
    pub fn sandbox(&self, identity: &Identity) -> Sandbox {
        let Identity { uid, gid, groups, .. } = identity;
        let sandbox = Sandbox::new(Credentials { uid: *uid, gid: *gid, groups: groups.clone() }, self.duty);
        let sandbox = if self.silent { sandbox.silent() } else { sandbox };
        match &self.places {
            Some(places) => sandbox.writing_in(places.iter().cloned()),
            None => sandbox,
        }
    }

    /// The descriptors that it keeps.
    pub fn kept(&self) -> &[RawFd] {
        &self.kept
    }
}

/// Runs `work` as `identity`; in this very process when that has no privilege and the identity already.
///
/// # Errors
/// What `work` returns, or that it could not be done.
pub fn as_user<T: Serialize + DeserializeOwned>(
    identity: &Identity,
    what: &Work,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if identity.has_all_that_this_process_has() { work() } else { Worker::start(identity, what, work)?.wait() }
}

/// Takes on the identity of a user for good, before anything of the user's is opened; without one, that of who called sudo. What is worth a
/// warning is returned. To be called while this process has one thread.
///
/// # Errors
/// There is no such user, or the identity cannot be taken on.
pub fn become_user(user: Option<&str>) -> Result<Vec<String>, Failure> {
    let variables: Vec<_> = std::env::vars_os().collect();
    let borrowed = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    let (identity, warnings) = Identity::for_invocation(user, borrowed).map_err(failed(Kind::Usage))?;
    if geteuid().is_root() && identity.uid != 0 {
        process::drop_to(&identity.credentials()).map_err(failed(Kind::Machine))?;
        for (name, value) in identity.environment(variables) {
            // SAFETY: the caller says that no other thread was started yet.
            unsafe { std::env::set_var(name, value) };
        }
        return Ok(Vec::new());
    }
    let is_unasked_root = identity.uid == 0 && user.is_none();
    Ok(if is_unasked_root { warnings.iter().map(ToString::to_string).collect() } else { Vec::new() })
}

/// A piece of work that is under way in a process of its own, which ends with this value.
pub struct Worker<T> {
    process: process::Worker,
    name: &'static str,
    user: String,
    limit: Duration,
    result: PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> Worker<T> {
    /// Begins `work` as `identity`.
    ///
    /// # Errors
    /// No process could be started.
    pub fn start(identity: &Identity, what: &Work, work: impl FnOnce() -> Result<T, Failure>) -> Result<Self, Failure> {
        let bytes = || serde_json::to_vec(&work()).unwrap_or_default();
        let process = process::Worker::start(&what.sandbox(identity), what.kept(), bytes);
        let process = process.map_err(|error| broken(what.name, &identity.user, &error))?;
        Ok(Self { process, name: what.name, user: identity.user.clone(), limit: what.limit, result: PhantomData })
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The result, once there is one; never waits for it.
    pub fn poll(&mut self) -> Option<Result<T, Failure>> {
        let result = self.process.poll()?;
        Some(read(self.name, &self.user, result))
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// What the work returns, that it ended without a result, or ctrl-C.
    pub fn wait(self) -> Result<T, Failure> {
        let Self { process, name, user, limit, .. } = self;
        // What is done after ctrl-C is wanted: it keeps what there is.
        let (was_requested, since) = (interrupt::requested(), Cell::new(None));
        let is_wanted = || {
            if was_requested || !interrupt::requested() {
                return true;
            }
            let began = since.get().unwrap_or_else(Instant::now);
            since.set(Some(began));
            began.elapsed() < GRACE
        };
        read(name, &user, process.wait(limit, is_wanted))
    }
}

/// The result in the bytes of a worker, which is not trusted: their number is limited, and how deep JSON may be (`serde_json`).
fn read<T: DeserializeOwned>(name: &str, user: &str, result: Result<Vec<u8>, WorkerError>) -> Result<T, Failure> {
    match result {
        Ok(bytes) => {
            serde_json::from_slice::<Result<T, Failure>>(&bytes).unwrap_or_else(|error| Err(broken(name, user, &error)))
        }
        Err(WorkerError::GivenUp) => Err(Failure::new(Kind::Interrupted, "interrupted")),
        Err(error) => Err(broken(name, user, &error)),
    }
}

/// The failure of a worker itself.
fn broken(name: &str, user: &str, error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::from_error(Kind::Machine, error).during(format!("{name} as user {user} failed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::kill;
    use nix::unistd::{Pid, pipe};
    use std::fs::File;
    use std::io::{Read, Write};

    fn me() -> Identity {
        let variables = std::env::vars_os().collect::<Vec<_>>();
        let borrowed = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        Identity::for_invocation(None, borrowed).unwrap().0
    }

    #[test]
    fn work_under_way_is_asked_for_without_waiting_and_ends_with_its_value() {
        let (gate, opener) = pipe().unwrap();
        let what = Work::new("waiting", Duty::Parse).keeping(&gate);
        let mut worker = Worker::start(&me(), &what, move || {
            let mut byte = [0];
            let _ = File::from(gate).read(&mut byte);
            Ok(u32::from(byte[0]))
        })
        .unwrap();
        assert!(worker.poll().is_none());
        File::from(opener).write_all(&[7]).unwrap();
        let result = loop {
            match worker.poll() {
                Some(result) => break result,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(result.unwrap(), 7);
        let child = {
            let idle = Worker::start(&me(), &Work::new("sleeping", Duty::Parse), || {
                std::thread::sleep(Duration::from_secs(600));
                Ok(())
            });
            Pid::from_raw(idle.unwrap().pid().cast_signed())
        };
        assert!(kill(child, None).is_err(), "the worker outlived its value");
    }

    #[test]
    fn work_that_crashes_is_a_failure_that_says_which_and_why() {
        let crashed = Worker::<()>::start(&me(), &Work::reading("analysing"), || panic!("an odd number")).unwrap();
        let failure = crashed.wait().unwrap_err();
        assert_eq!(failure.kind(), Kind::Machine);
        let said = failure.chain();
        assert!(said.starts_with("analysing as user ") && said.contains("it crashed: an odd number"), "{said}");
    }

    #[test]
    fn a_result_that_is_deeper_than_any_is_an_error() {
        let deep = format!("{{\"Ok\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let result = read::<serde_json::Value>("reading", "nobody", Ok(deep.into_bytes()));
        assert!(result.unwrap_err().chain().contains("recursion limit"));
    }
}
