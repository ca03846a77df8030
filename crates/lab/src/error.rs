//! What can go wrong with a lab. Conditions of single files (vanished, unreadable, changed) are data, not errors: see
//! [`crate::SkipReason`].

use slowpath_tables::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a lab could not be built, prepared or read.
#[derive(Debug, Error)]
pub enum LabError {
    /// The image could not be mounted to keep it warm.
    #[error("the lab's image could not be kept mounted")]
    KeepMounted(#[source] std::io::Error),
    /// A system call on a path failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, as a verb phrase.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// This machine or this user cannot have a lab.
    #[error("a lab needs {what}: {reason} ({remedy})")]
    Unavailable {
        /// The facility that is missing.
        what: &'static str,
        /// How that was seen.
        reason: String,
        /// What the user can do.
        remedy: &'static str,
    },
    /// The directory for the image is too small.
    #[error("the image needs {} bytes in {}, which has {} free", needed.0, directory.display(), free.0)]
    NoSpace {
        /// Bytes that the image will allocate.
        needed: Bytes,
        /// Bytes free to us.
        free: Bytes,
        /// Where the image was to be.
        directory: PathBuf,
    },
    /// Root's own directory cannot be used.
    #[error(transparent)]
    State(#[from] slowpath_process::StateError),
    /// Other users could replace what is put into the directory.
    #[error("{} can be changed by other users; choose a directory owned by root or one with the sticky bit", .0.display())]
    UnsafeDirectory(PathBuf),
    /// `mkfs.ext4` refused.
    #[error("mkfs.ext4 failed ({status}): {message}")]
    MakeFilesystem {
        /// Its exit status.
        status: String,
        /// Its standard error.
        message: String,
    },
    /// None of the paths given can be put into an image.
    #[error("no file of the closure can be put into an image ({skipped} paths skipped)")]
    EmptyClosure {
        /// How many paths were given and skipped.
        skipped: usize,
    },
    /// The path of an extra file is not a plain relative path.
    #[error("{} is not a valid path for an extra file: it must be relative, without '..'", .0.display())]
    ExtraPath(PathBuf),
    /// [`crate::Lab::verify_cold`] was called without [`crate::Lab::prepare_cold`] before it.
    #[error("the lab was not prepared for a cold launch")]
    NotPrepared,
    /// [`crate::Lab::verify_cold`] was called before the lab was mounted in the launch's namespace.
    #[error("the lab's device {device} is not mounted by any launch")]
    NotMounted {
        /// Name of the loop device.
        device: String,
    },
    /// The thread that works in a private mount namespace panicked.
    #[error("the thread with the private mount namespace panicked")]
    Panicked,
    /// A mount step failed while the lab itself mounted its device.
    #[error("cannot mount the lab's image")]
    Mount(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// For `map_err`: what was tried on which path.
pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LabError {
    let path = path.to_path_buf();
    move |source| LabError::Io { action, path, source }
}

/// The same for the error numbers of `nix`.
pub(crate) fn failed_errno(action: &'static str, path: &Path) -> impl FnOnce(nix::Error) -> LabError {
    let path = path.to_path_buf();
    move |errno| LabError::Io { action, path, source: errno.into() }
}
