//! The target of a command line, and what its user should know of it.

use crate::failure::Failure;
use slowpath_session::target::{Invocation, Target};
use std::ffi::OsString;
use std::time::Duration;

/// The target of a command line, after what the user should know of it; `patience` is how long a launch may take where the user says nothing.
pub fn of(
    invocation: impl Into<Invocation>,
    command: &[OsString],
    patience: Option<Duration>,
) -> Result<Target, Failure> {
    let target = Target::of(invocation, command.to_vec(), patience)?;
    warn(&target);
    Ok(target)
}

/// What the user should know of a target.
pub fn warn(target: &Target) {
    target.warnings.iter().for_each(|warning| eprintln!("slowpath: warning: {warning}"));
}
