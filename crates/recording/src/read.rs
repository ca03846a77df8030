//! Opening and reading a recording, and saying what is damaged in it.

use crate::directory::Directory;
use crate::manifest::{Manifest, SCHEMA_VERSION, Segment};
use crate::segment_limits::Allowance;
use crate::tables::Tables;
use crate::{MANIFEST_FILE, segment};
use slowpath_tables::{ColumnError, Table};
use std::io;
use std::path::{Path, PathBuf};

/// Largest manifest that is read: 200,000 segments take some 24 MB. In memory it becomes up to eight times as much.
const MANIFEST_LIMIT: u64 = 32 << 20;

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

/// An open recording. Its content does not change when the recorder goes on: the manifest was read once.
#[derive(Debug)]
pub struct Recording {
    directory: Directory,
    path: PathBuf,
    manifest: Manifest,
    allowance: Allowance,
}

impl Recording {
    /// Opens the recording in directory `path`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let directory = Directory::open(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotADirectory => {
                OpenError::NotARecording { why: format!("{} is not a directory", path.display()) }
            }
            _ => OpenError::Io { path: path.to_owned(), source },
        })?;
        let json = directory.read_file(MANIFEST_FILE, MANIFEST_LIMIT).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => {
                OpenError::NotARecording { why: format!("{} has no {MANIFEST_FILE}", path.display()) }
            }
            io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => {
                OpenError::Damaged { file: MANIFEST_FILE.to_owned(), why: Why::Io(source) }
            }
            _ => OpenError::Io { path: path.join(MANIFEST_FILE), source },
        })?;
        let manifest = Manifest::parse(&json)?;
        debug_assert!(manifest.schema_version <= SCHEMA_VERSION);
        Ok(Self { directory, path: path.to_owned(), manifest, allowance: Allowance::default() })
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The directory, as it was given to [`Recording::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All rows of a table in the order they were recorded, which is nearly that of time.
    ///
    /// # Errors
    /// The first damaged segment.
    pub fn read<T: Table>(&self) -> Result<Vec<T>, ReadError> {
        let mut rows = Vec::new();
        for segment in self.segments(T::NAME) {
            self.read_segment(segment, &mut rows)
                .map_err(|why| ReadError::Damaged { file: segment.file.clone(), why })?;
        }
        Ok(rows)
    }

    /// The rows of all whole segments of a table, and what was left out.
    pub fn read_whole<T: Table>(&self) -> (Vec<T>, Vec<Damage>) {
        let mut rows = Vec::new();
        let mut damages = Vec::new();
        for segment in self.segments(T::NAME) {
            let before = rows.len();
            if let Err(why) = self.read_segment(segment, &mut rows) {
                rows.truncate(before);
                damages.push(Damage { file: segment.file.clone(), rows: segment.rows, why });
            }
        }
        (rows, damages)
    }

    /// All tables, sorted.
    ///
    /// # Errors
    /// The first damaged segment.
    pub fn tables(&self) -> Result<Tables, ReadError> {
        Tables::read(self)
    }

    /// All tables, sorted, without what is damaged: the rows left out are counted in the manifest's losses as
    /// `damaged.<table>`.
    pub fn tables_whole(&self) -> (Tables, Vec<Damage>) {
        Tables::read_whole(self)
    }

    fn segments(&self, table: &str) -> impl Iterator<Item = &Segment> {
        self.manifest.segments.iter().filter(move |segment| segment.table == table)
    }

    /// Adds the rows of a segment; where it is not whole some of them may have been added.
    fn read_segment<T: Table>(&self, segment: &Segment, rows: &mut Vec<T>) -> Result<(), Why> {
        if !name_is_ours(segment) {
            return Err(Why::Name);
        }
        let file = self.directory.open_file(&segment.file).map_err(Why::Io)?;
        let found = file.metadata().map_err(Why::Io)?.len();
        if found != segment.bytes.0 {
            return Err(Why::Size { expected: segment.bytes.0, found });
        }
        let before = rows.len();
        segment::decode(file, (found, segment.rows), &self.allowance, rows)?;
        let found = (rows.len() - before) as u64;
        if found != segment.rows {
            return Err(Why::Rows { expected: segment.rows, found });
        }
        Ok(())
    }
}

/// A manifest may come from anybody: it names files of its own recording only.
fn name_is_ours(segment: &Segment) -> bool {
    segment.file.split_once('/').is_some_and(|(folder, file)| {
        folder == segment.table && !file.starts_with('.') && !file.contains('/') && file.ends_with(".parquet")
    })
}
