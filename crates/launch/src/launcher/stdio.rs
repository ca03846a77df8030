//! The pipes and files that become the target's standard input, output and error.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{Gid, Uid, pipe2};
use regex::bytes::Regex;

use super::output::Stream;
use crate::{LaunchSpec, ReadyWhen, StdioPolicy};

/// Standard input, output and error of the target; `None`: those of the observer.
pub(super) type TargetStdio = [Option<OwnedFd>; 3];

/// A pipe for an output of the target: the observer's end, which does not block, and the target's.
pub(super) struct OutputPipe {
    source: File,
    end: OwnedFd,
    /// What it holds at most, bytes.
    size: i32,
    owner: (u32, u32),
}

impl OutputPipe {
    fn new(spec: &LaunchSpec) -> io::Result<Self> {
        let (source, end) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&source, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        hand_over(&end, spec)?;
        let size = fcntl(&end, FcntlArg::F_GETPIPE_SZ)?;
        Ok(Self { source: source.into(), end, size, owner: owner(spec) })
    }

    /// From both ends after a launch of `spec` of which nobody is left.
    pub(super) fn after(source: File, end: OwnedFd, spec: &LaunchSpec) -> Option<Self> {
        let size = fcntl(&end, FcntlArg::F_GETPIPE_SZ).ok()?;
        Some(Self { source, end, size, owner: owner(spec) })
    }

    /// Whether a target of `spec` finds it as it would find a new one; what the last target set for it is undone.
    fn is_as_new(&self, spec: &LaunchSpec) -> bool {
        let has_flags = fcntl(&self.end, FcntlArg::F_SETFL(OFlag::empty())).is_ok();
        self.owner == owner(spec) && self.size == DEFAULT_SIZE && has_flags
    }
}

/// Size of a new pipe (pipe(7)); one that somebody resized, or that a poor user got smaller, is not used again.
const DEFAULT_SIZE: i32 = 64 << 10;

fn owner(spec: &LaunchSpec) -> (u32, u32) {
    (spec.identity.uid, spec.identity.gid)
}

/// The observer's and the target's ends of standard input, output and error. `null` is `/dev/null`; `kept` are pipes of the launch before, for
/// output and error, used where they are as good as new.
pub(super) fn plumb(
    spec: &LaunchSpec,
    null: &OwnedFd,
    kept: Option<[OutputPipe; 2]>,
) -> io::Result<(Vec<Stream>, TargetStdio)> {
    let pattern = match &spec.ready {
        ReadyWhen::Line(pattern) => Some(Regex::new(pattern).map_err(io::Error::other)?),
        _ => None,
    };
    let inherit = spec.stdio == StdioPolicy::Inherit;
    let stdin = if inherit { None } else { Some(null.try_clone()?) };
    let through = pattern.is_some() || spec.stdio == StdioPolicy::Capture;
    if !through {
        let none = || if inherit { Ok(None) } else { null.try_clone().map(Some) };
        return Ok((Vec::new(), [stdin, none()?, none()?]));
    }
    let mut kept = kept.into_iter().flatten();
    let mut streams = Vec::new();
    let mut piped = |own: i32| -> io::Result<Option<OwnedFd>> {
        let old = kept.next().filter(|pipe| pipe.is_as_new(spec));
        let OutputPipe { source, end, .. } = old.map_or_else(|| OutputPipe::new(spec), Ok)?;
        // SAFETY: standard output and error stay open for the whole life of the observer; only the pump replaces
        // them, by /dev/null under the same number.
        let sink = inherit.then(|| unsafe { BorrowedFd::borrow_raw(own) });
        let keep_tail = spec.stdio == StdioPolicy::Capture;
        streams.push(Stream::new(source, sink, keep_tail, pattern.clone()));
        Ok(Some(end))
    };
    let outputs = [piped(libc::STDOUT_FILENO)?, piped(libc::STDERR_FILENO)?];
    let [stdout, stderr] = outputs;
    Ok((streams, [stdin, stdout, stderr]))
}

/// `/dev/null` for reading or writing.
pub(super) fn dev_null() -> io::Result<OwnedFd> {
    Ok(File::options().read(true).write(true).open("/dev/null")?.into())
}

/// Gives a pipe to the target's user: else `/dev/stderr` (an open by name) would be refused to him.
fn hand_over(end: &impl AsFd, spec: &LaunchSpec) -> io::Result<()> {
    let own = (nix::unistd::geteuid(), nix::unistd::getegid());
    if own.0.is_root() && own != (Uid::from_raw(spec.identity.uid), Gid::from_raw(spec.identity.gid)) {
        nix::unistd::fchown(end, Some(Uid::from_raw(spec.identity.uid)), Some(Gid::from_raw(spec.identity.gid)))?;
    }
    Ok(())
}
