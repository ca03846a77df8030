//! Why a recording cannot be written.

use nix::errno::Errno;
use slowpath_tables::Bytes;
use std::io;
use std::path::PathBuf;

/// Why a recording cannot be written. What was written before stays readable.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The output path is a symbolic link.
    #[error("{path} is a symbolic link; the output must be a directory of its own")]
    Symlink {
        /// Output path.
        path: PathBuf,
    },
    /// The output path is something else than a directory.
    #[error("{path} exists and is not a directory")]
    NotADirectory {
        /// Output path.
        path: PathBuf,
    },
    /// The output directory has content.
    #[error("{path} is not empty{}", if *.recording { " (it holds a recording)" } else { "" })]
    NotEmpty {
        /// Output path.
        path: PathBuf,
        /// True when the content looks like a recording.
        recording: bool,
    },
    /// No space, a quota or a limit on file sizes.
    #[error("no space for {file}")]
    Full {
        /// File, relative to the recording.
        file: String,
        /// The system's answer: ENOSPC, EDQUOT or EFBIG.
        #[source]
        source: io::Error,
    },
    /// The recording reached the size it was allowed.
    #[error("the recording reached its limit of {} bytes", .limit.0)]
    LimitReached {
        /// The limit.
        limit: Bytes,
    },
    /// The system refused.
    #[error("cannot write {file}")]
    Io {
        /// File, relative to the recording; `.` for the directory itself.
        file: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// Rows could not be encoded.
    #[error("cannot encode {file}")]
    Encode {
        /// File, relative to the recording.
        file: String,
        /// The encoder's answer.
        #[source]
        source: parquet::errors::ParquetError,
    },
}

impl WriteError {
    /// The error for what the system answered about `file`.
    pub(crate) fn system(file: &str, source: io::Error) -> Self {
        let file = file.to_owned();
        match source.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG) => Self::Full { file, source },
            _ => Self::Io { file, source },
        }
    }
}
