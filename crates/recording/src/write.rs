//! Writing a recording so that it is readable whenever the recorder dies.

use crate::directory::{CreateProblem, Directory};
use crate::limit::Limit;
use crate::manifest::{Manifest, Segment};
use crate::write_error::WriteError;
use crate::{MANIFEST_FILE, RESERVE_FILE, segment};
use arrow_array::RecordBatch;
use slowpath_tables::{Bytes, Table};
use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Rows that are buffered per table before a segment is written: some 10 MB of memory, 1 MB of file.
pub const SEGMENT_ROWS: usize = 100_000;

/// Part of a segment that is tried once more where the disk has no room for the whole. What is left then is for the tables that
/// tell about it.
const KEPT_OF_FULL: usize = 4;

/// Space held at first for the manifest, so that a full disk can still be reported: enough for some 400 segments. It grows with
/// the manifest.
const RESERVE: Bytes = Bytes(128 * 1024);

/// Segments that the manifest on disk may lack between two calls of [`Writer::flush`], as a share of those it lists: writing
/// it anew for each would take more of the disk than the segments.
const UNLISTED_SHARE: usize = 100;

/// Rows of one table that wait for their segment, without their type.
trait Pending: Any + Send {
    fn rows(&self) -> usize;
    fn take(&mut self) -> RecordBatch;
}

impl<T: Table + Send + 'static> Pending for Vec<T> {
    fn rows(&self) -> usize {
        self.len()
    }
    fn take(&mut self) -> RecordBatch {
        let batch = T::to_batch(self);
        self.clear();
        batch
    }
}

/// Writes one recording. Dropped without [`Writer::finish`] it leaves what a killed recorder leaves: the segments
/// written so far and a manifest without an end.
pub struct Writer {
    path: PathBuf,
    directory: Directory,
    folders: BTreeMap<&'static str, Directory>,
    pending: BTreeMap<&'static str, Box<dyn Pending>>,
    written_segments: BTreeMap<&'static str, u64>,
    manifest: Manifest,
    segment_rows: usize,
    limit: Option<Limit>,
    written: Bytes,
    reserved: Bytes,
    listed_segments: usize,
}

impl Writer {
    /// Makes the directory (0700) or takes an empty one, and writes the first manifest.
    ///
    /// # Errors
    /// The path is a symbolic link, no directory, not empty, or not writable.
    pub fn create(path: impl AsRef<Path>, manifest: Manifest) -> Result<Self, WriteError> {
        let path = path.as_ref();
        let directory = Directory::create(path).map_err(|problem| match problem {
            CreateProblem::Symlink => WriteError::Symlink { path: path.to_owned() },
            CreateProblem::NotADirectory => WriteError::NotADirectory { path: path.to_owned() },
            CreateProblem::System(source) => WriteError::system(&path.to_string_lossy(), source),
        })?;
        let names = directory.names().map_err(|source| WriteError::system(".", source))?;
        if !names.is_empty() {
            let recording = names.iter().any(|name| name == MANIFEST_FILE);
            return Err(WriteError::NotEmpty { path: path.to_owned(), recording });
        }
        let mut writer = Self {
            path: path.to_owned(),
            directory,
            folders: BTreeMap::new(),
            pending: BTreeMap::new(),
            written_segments: BTreeMap::new(),
            manifest,
            segment_rows: SEGMENT_ROWS,
            limit: None,
            written: Bytes(0),
            reserved: RESERVE,
            listed_segments: 0,
        };
        writer.directory.reserve(RESERVE_FILE, RESERVE.0).map_err(|source| WriteError::system(".", source))?;
        writer.write_manifest()?;
        Ok(writer)
    }

    /// Sets the size that the recording must not exceed (`--max-size`).
    ///
    /// An eighth before it, [`WriteError::LimitReached`] is returned once, with all rows kept; the caller then stops
    /// recording. Half of that eighth is for the rows that tell what the others are about, most of which come last. Rows that
    /// do not fit are counted as losses and the error is returned again.
    #[must_use]
    pub fn with_limit(mut self, limit: Bytes) -> Self {
        self.limit = Some(Limit::new(limit));
        self
    }

    /// Sets the rows of a segment; [`SEGMENT_ROWS`] unless set.
    #[must_use]
    pub fn with_segment_rows(mut self, rows: usize) -> Self {
        self.segment_rows = rows.max(1);
        self
    }

    /// Takes rows of a table and writes the segments that are full.
    ///
    /// # Errors
    /// A segment could not be written: its rows are counted in the manifest's losses as `not_written.<table>`, the
    /// segments before it are whole, and the writer can go on. Or the manifest could not be written: its former state
    /// stands, and [`Writer::finish`] writes it in space that is held for that.
    pub fn push<T: Table + Send + 'static>(&mut self, rows: impl IntoIterator<Item = T>) -> Result<(), WriteError> {
        let mut first = Ok(());
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let pending = self.pending.entry(T::NAME).or_insert_with(|| Box::new(Vec::<T>::new()));
            // The entry was made for this very table name, and a name belongs to one type.
            let Some(buffer) = (pending.as_mut() as &mut dyn Any).downcast_mut::<Vec<T>>() else { break };
            buffer.extend(rows.by_ref().take(self.segment_rows.saturating_sub(buffer.len())));
            if buffer.len() >= self.segment_rows {
                first = first.and(self.flush_table(T::NAME));
                if self.manifest.segments.len() - self.listed_segments > self.listed_segments / UNLISTED_SHARE {
                    first = first.and(self.write_manifest());
                }
            }
        }
        first
    }

    /// Writes a segment for every table that has rows waiting, and the manifest that lists them.
    ///
    /// # Errors
    /// As [`Writer::push`]; all tables are tried, the first error is returned.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        let mut first = self.flush_tables();
        if self.listed_segments < self.manifest.segments.len() {
            first = first.and(self.write_manifest());
        }
        first
    }

    fn flush_tables(&mut self) -> Result<(), WriteError> {
        let names: Vec<_> = self.pending.keys().copied().collect();
        let mut first = Ok(());
        for name in names {
            first = first.and(self.flush_table(name));
        }
        first
    }

    /// Changes the manifest and writes it.
    ///
    /// # Errors
    /// The manifest could not be written; the former one stays.
    pub fn update_manifest(&mut self, edit: impl FnOnce(&mut Manifest)) -> Result<(), WriteError> {
        edit(&mut self.manifest);
        self.write_manifest()
    }

    /// Writes what waits, then the last manifest as `edit` leaves it, and returns it.
    ///
    /// # Errors
    /// The first error met; the manifest is written in any case, if that is possible.
    pub fn finish(mut self, edit: impl FnOnce(&mut Manifest)) -> Result<Manifest, WriteError> {
        let flushed = match self.flush_tables() {
            // The caller asked for the end; that the closing rows pass the mark is no news to it.
            Err(WriteError::LimitReached { .. }) if !self.rows_were_refused() => Ok(()),
            other => other,
        };
        edit(&mut self.manifest);
        // The held space goes back now and not at the first full disk: a recorder that went on would use it up. What
        // fails here shows up as a manifest that cannot be written.
        let _ = self.directory.remove(RESERVE_FILE);
        self.reserved = Bytes(0);
        self.write_manifest()?;
        flushed.map(|()| self.manifest)
    }

    /// Takes everything back, so that the directory is as empty as it was: there was nothing to record.
    ///
    /// # Errors
    /// Something of it cannot be removed.
    pub fn discard(self) -> Result<(), WriteError> {
        let system = |source| WriteError::system(".", source);
        for segment in &self.manifest.segments {
            if let Some((folder, file)) = segment.file.split_once('/')
                && let Some(folder) = self.folders.get(folder)
            {
                folder.remove(file).map_err(system)?;
            }
        }
        for folder in self.folders.keys() {
            self.directory.remove_directory(folder).map_err(system)?;
        }
        self.directory.remove(RESERVE_FILE).map_err(system)?;
        self.directory.remove(MANIFEST_FILE).map_err(system)
    }

    /// The directory, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest as it stands.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn rows_were_refused(&self) -> bool {
        self.manifest.losses.0.iter().any(|(kind, lost)| kind.starts_with("not_written.") && *lost > 0)
    }

    fn flush_table(&mut self, table: &'static str) -> Result<(), WriteError> {
        let Some(pending) = self.pending.get_mut(table).filter(|pending| pending.rows() > 0) else {
            return Ok(());
        };
        let batch = pending.take();
        let waiting = batch.num_rows() as u64;
        let room = self.limit.as_ref().map_or(Bytes(u64::MAX), |limit| limit.room(table, self.written));
        let written = self.write_rows(table, &batch, room);
        let rows = match &written {
            Ok(rows) => *rows,
            // It may be the size of the segment that the disk has no room for: its beginning is better than nothing.
            Err(WriteError::Full { .. }) => {
                self.write_rows(table, &batch.slice(0, batch.num_rows() / KEPT_OF_FULL), room).unwrap_or(0)
            }
            Err(_) => 0,
        };
        if rows < waiting {
            self.manifest.losses.add(&format!("not_written.{table}"), waiting - rows);
            // The error at hand says more than one from the manifest; the former manifest is still true.
            let _ = self.write_manifest();
        }
        written?;
        match &mut self.limit {
            Some(limit) => limit.note(table, rows < waiting, self.written),
            None => Ok(()),
        }
    }

    /// Writes a segment of the first rows that fit into `room`; how many those are.
    fn write_rows(&mut self, table: &'static str, batch: &RecordBatch, room: Bytes) -> Result<u64, WriteError> {
        let number = self.written_segments.get(table).copied().unwrap_or_default();
        let name = format!("{number:06}.parquet");
        let file = format!("{table}/{name}");
        let encoded = segment::encode_within(batch, room);
        let (rows, content) = encoded.map_err(|source| WriteError::Encode { file: file.clone(), source })?;
        if rows > 0 {
            let bytes = self.write_segment(table, &name, &file, &content)?;
            self.written_segments.insert(table, number + 1);
            self.written += bytes;
            self.manifest.segments.push(Segment { table: table.to_owned(), file, rows, bytes });
        }
        Ok(rows)
    }

    fn write_segment(
        &mut self,
        table: &'static str,
        name: &str,
        file: &str,
        content: &[u8],
    ) -> Result<Bytes, WriteError> {
        let system = |source| WriteError::system(file, source);
        if !self.folders.contains_key(table) {
            self.folders.insert(table, self.directory.subdirectory(table).map_err(system)?);
        }
        if let Some(folder) = self.folders.get(table) {
            folder.write_whole(name, content).map_err(system)?;
        }
        Ok(Bytes(content.len() as u64))
    }

    fn write_manifest(&mut self) -> Result<(), WriteError> {
        let json = self.manifest.to_json();
        let system = |source| WriteError::system(MANIFEST_FILE, source);
        // Twice: the next one is longer. Once the space was given back, no more is held.
        let wanted = Bytes(json.len() as u64 * 2);
        if self.reserved.0 > 0 && wanted > self.reserved {
            let wanted = Bytes(wanted.0 * 2);
            self.directory.reserve_more(RESERVE_FILE, wanted.0).map_err(system)?;
            self.reserved = wanted;
        }
        self.directory.write_whole(MANIFEST_FILE, json.as_bytes()).map_err(system)?;
        self.listed_segments = self.manifest.segments.len();
        Ok(())
    }
}
