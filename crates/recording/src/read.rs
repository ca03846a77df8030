//! Opening and reading a recording, and saying what is damaged in it.

use crate::directory::Directory;
use crate::manifest::{Manifest, SCHEMA_VERSION, Segment};
use crate::read_error::{Damage, OpenError, ReadError, Why};
use crate::segment_limits::Allowance;
use crate::{MANIFEST_FILE, segment};
use slowpath_tables::Table;
use std::io;
use std::path::{Path, PathBuf};

/// Largest manifest that is read: 200,000 segments take some 24 MB. In memory it becomes up to eight times as much.
const MANIFEST_LIMIT: u64 = 32 << 20;

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
