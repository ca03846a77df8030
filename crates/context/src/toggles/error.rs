//! Why launches cannot be given what the choices need.

use slowpath_session::failure::{Failure, Kind};
use std::io;
use std::path::PathBuf;

/// Why a launch could not be given what it needs.
#[derive(Debug, thiserror::Error)]
pub enum ToggleError {
    /// A cgroup could not be made or set.
    #[error("the cgroup {} cannot be {what}", path.display())]
    Group {
        /// The group, or the file of it.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// Not as many sides as candidates.
    #[error("{given} sides were given for {expected} candidates")]
    Sides {
        /// Sides.
        given: usize,
        /// Candidates.
        expected: usize,
    },
}

impl From<&ToggleError> for Failure {
    fn from(error: &ToggleError) -> Self {
        Self::from_error(Kind::Machine, error).hint("only root creates cgroups, below the cgroup that slowpath runs in")
    }
}
