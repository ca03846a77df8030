//! The pipes and files that become the target's standard input, output and error.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::unistd::{Gid, Uid, pipe2};
use regex::bytes::Regex;

use super::output::Stream;
use crate::{LaunchSpec, ReadyWhen, StdioPolicy};

/// Standard input, output and error of the target; `None`: those of the observer.
pub(super) type TargetStdio = [Option<OwnedFd>; 3];

/// The observer's and the target's ends of standard input, output and error.
pub(super) fn plumb(spec: &LaunchSpec) -> io::Result<(Vec<Stream>, TargetStdio)> {
    let pattern = match &spec.ready {
        ReadyWhen::Line(pattern) => Some(Regex::new(pattern).map_err(io::Error::other)?),
        _ => None,
    };
    let inherit = spec.stdio == StdioPolicy::Inherit;
    let stdin = if inherit { None } else { Some(dev_null()?) };
    let through = pattern.is_some() || spec.stdio == StdioPolicy::Capture;
    if !through {
        let null = || if inherit { Ok(None) } else { dev_null().map(Some) };
        return Ok((Vec::new(), [stdin, null()?, null()?]));
    }
    let mut streams = Vec::new();
    let mut piped = |own: i32| -> io::Result<Option<OwnedFd>> {
        let (source, end) = pipe2(OFlag::O_CLOEXEC)?;
        nix::fcntl::fcntl(&source, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        hand_over(&end, spec)?;
        // SAFETY: standard output and error stay open for the whole life of the observer; only the pump replaces
        // them, by /dev/null under the same number.
        let sink = inherit.then(|| unsafe { BorrowedFd::borrow_raw(own) });
        let keep_tail = spec.stdio == StdioPolicy::Capture;
        streams.push(Stream::new(source.into(), sink, keep_tail, pattern.clone()));
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
    if nix::unistd::geteuid().is_root() {
        nix::unistd::fchown(end, Some(Uid::from_raw(spec.identity.uid)), Some(Gid::from_raw(spec.identity.gid)))?;
    }
    Ok(())
}
