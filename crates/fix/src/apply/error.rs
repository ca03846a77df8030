//! Why files could not be changed for a fix, or changed back.

use std::io;
use std::path::PathBuf;

/// An error of applying or undoing.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A path cannot be read or written.
    #[error("{} cannot be used: {error}", path.display())]
    Unusable {
        /// It.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A path has `.` or `..`, or names no file.
    #[error("{} is not a plain file path", .0.display())]
    NotPlain(PathBuf),
    /// Nowhere to keep records.
    #[error("this user has no home directory")]
    NoHome,
    /// Another slowpath applies or undoes.
    #[error("another `slowpath fix` is running")]
    Busy,
    /// A record is none that this version wrote.
    #[error("the record {} of an applied fix cannot be used: {why}", path.display())]
    Damaged {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The list of diagnoses that root made is none that this version wrote.
    #[error("the list of diagnoses that root made, {}, cannot be used: {why}", path.display())]
    DamagedList {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Somebody else writes the same files at the same time.
    #[error("the files of the fix {fix} keep changing")]
    Restless {
        /// The fix.
        fix: String,
    },
    /// A file is not as it was left.
    #[error("{} was changed after the fix {fix} was applied: nothing was restored", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// The fix.
        fix: String,
    },
    /// A fix could not be applied.
    #[error("{error}")]
    NotApplied {
        /// Why.
        error: Box<Self>,
        /// Whether everything is as before.
        is_restored: bool,
    },
}

impl ApplyError {
    /// A path that cannot be used.
    pub fn unusable(path: impl Into<PathBuf>, error: io::Error) -> Self {
        Self::Unusable { path: path.into(), error }
    }
}
