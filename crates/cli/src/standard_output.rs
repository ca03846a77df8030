//! With `--json` standard output holds one object and nothing else: a target that inherits it writes to standard
//! error instead while it is being recorded.

use crate::failure::{Failure, Kind};
use std::io::{self, stderr, stdout};
use std::os::fd::{AsFd, OwnedFd};

/// Standard output is standard error until this is dropped.
pub struct OutputToError {
    kept: OwnedFd,
}

impl OutputToError {
    /// Diverts it, for this process and for those it starts.
    pub fn divert() -> Result<Self, Failure> {
        let diverted = || -> io::Result<Self> {
            // Duplicates made by the standard library are closed on exec: the target does not get this one.
            let kept = stdout().as_fd().try_clone_to_owned()?;
            nix::unistd::dup2_stdout(stderr())?;
            Ok(Self { kept })
        };
        diverted().map_err(|error| Failure::new(Kind::Machine, format!("standard output cannot be kept free: {error}")))
    }
}

impl Drop for OutputToError {
    fn drop(&mut self) {
        let _ = nix::unistd::dup2_stdout(&self.kept);
    }
}
