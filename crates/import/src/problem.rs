//! Why a trace was not read to its end.

use slowpath_recording::WriteError;
use std::io;

/// Why a trace was not read to its end. What was read until then is kept.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It could not be read.
    #[error("{file} cannot be read beyond byte {offset}")]
    Read {
        /// The file, as it was named.
        file: String,
        /// Bytes before that.
        offset: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line is none of its format.
    #[error("{file}, line {line} (byte {offset}): expected {expected}, found {found}")]
    Line {
        /// The file, as it was named.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// Where it begins.
        offset: u64,
        /// What should stand there.
        expected: &'static str,
        /// What stands there, cut. Foreign text.
        found: String,
    },
    /// Bytes are none of its format.
    #[error("{file}, byte {offset}: expected {expected}")]
    Bytes {
        /// The file, as it was named.
        file: String,
        /// Where.
        offset: u64,
        /// What should stand there.
        expected: &'static str,
    },
    /// The recording could not be written.
    #[error("the recording cannot be written")]
    Write(#[from] WriteError),
}
