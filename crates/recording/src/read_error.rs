//! Why a recording cannot be opened or read, and what is wrong with its files.

use slowpath_tables::ColumnError;
use std::io;
use std::path::PathBuf;

/// Why a directory cannot be opened as a recording.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is something else.
    #[error("not a recording: {why}")]
    NotARecording {
        /// What is missing.
        why: String,
    },
    /// A later version of the program wrote it.
    #[error("the recording has schema version {found}; this program knows versions up to {known}")]
    Newer {
        /// Version of the recording.
        found: u64,
        /// Latest version known here.
        known: u32,
    },
    /// The manifest is damaged.
    #[error("{file} is damaged: {why}")]
    Damaged {
        /// File, relative to the recording.
        file: String,
        /// What is wrong with it.
        #[source]
        why: Why,
    },
    /// The system refused.
    #[error("cannot open {path}")]
    Io {
        /// What was to be opened.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
}

/// Why a table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A segment that the manifest lists is not whole.
    #[error("{file} is damaged: {why}")]
    Damaged {
        /// File, relative to the recording.
        file: String,
        /// What is wrong with it.
        #[source]
        why: Why,
    },
}

/// A segment that [`Recording::read_whole`] left out.
#[derive(Debug, thiserror::Error)]
#[error("{file} is damaged, {rows} rows are missing: {why}")]
pub struct Damage {
    /// File, relative to the recording.
    pub file: String,
    /// Rows that the manifest says were in it.
    pub rows: u64,
    /// What is wrong with it.
    #[source]
    pub why: Why,
}

/// What is wrong with a file of a recording.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// It cannot be opened or read.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// The manifest names a file outside the recording's layout.
    #[error("the manifest lists a file that is not <table>/<name>.parquet")]
    Name,
    /// The size differs from the manifest's.
    #[error("it has {found} bytes, the manifest says {expected}")]
    Size {
        /// By the manifest.
        expected: u64,
        /// On disk.
        found: u64,
    },
    /// The number of rows differs from the manifest's.
    #[error("it has {found} rows, the manifest says {expected}")]
    Rows {
        /// By the manifest.
        expected: u64,
        /// In the file.
        found: u64,
    },
    /// It claims more than any recording has.
    #[error(
        "it has {found} {what} and no recording has more than {most}: it is corrupt or crafted to exhaust memory; record again"
    )]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there is, or is claimed.
        found: u64,
        /// How much is read.
        most: u64,
    },
    /// Pages in a form that the writer never chooses.
    #[error(
        "its pages have encoding {0}, which no recording has: it is corrupt or crafted to exhaust memory; record again"
    )]
    Encoding(i64),
    /// The manifest lists it more than once.
    #[error("the manifest lists it more than once")]
    Twice,
    /// It is no Parquet file.
    #[error("{0}")]
    Parquet(#[source] parquet::errors::ParquetError),
    /// Its pages cannot be decoded.
    #[error("{0}")]
    Arrow(#[source] arrow_schema::ArrowError),
    /// The decoder gave up in a way it should not.
    #[error("it cannot be decoded")]
    Undecodable,
    /// Its columns are not those of the table.
    #[error("{0}")]
    Column(#[source] ColumnError),
    /// It is not JSON, or not with the fields of its version.
    #[error("{0}")]
    Json(#[source] serde_json::Error),
}
