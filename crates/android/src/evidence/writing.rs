//! Writing evidence: every file as soon as it came, and the manifest anew after it, so that what was collected stays whatever comes next.

use super::{EvidenceManifest, MANIFEST, Step};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of all files together.
const MOST_BYTES: u64 = 1 << 30;

/// Writes one evidence.
pub struct EvidenceWriter {
    directory: PathBuf,
    manifest: EvidenceManifest,
    bytes: u64,
}

impl EvidenceWriter {
    /// Begins in an empty directory.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(directory: &Path, manifest: EvidenceManifest) -> io::Result<Self> {
        let writer = Self { directory: directory.to_owned(), manifest, bytes: 0 };
        writer.save()?;
        Ok(writer)
    }

    /// Adds bytes to a file of the evidence, whose name [`super`] made.
    ///
    /// # Errors
    /// It cannot be written, or all files together would be too large.
    pub fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > MOST_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the evidence would have more than 1 GiB"));
        }
        let path = self.place_of(name)?;
        File::options().append(true).create(true).mode(0o600).open(path)?.write_all(bytes)
    }

    /// Where a file of the evidence is to be, with the directories above it.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn place_of(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.directory.join(name);
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        Ok(path)
    }

    /// Notes a step.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn note(&mut self, step: Step) -> io::Result<()> {
        self.manifest.steps.push(step);
        self.save()
    }

    /// Changes the manifest.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn update(&mut self, change: impl FnOnce(&mut EvidenceManifest)) -> io::Result<()> {
        change(&mut self.manifest);
        self.save()
    }

    /// What was noted so far.
    pub fn manifest(&self) -> &EvidenceManifest {
        &self.manifest
    }

    /// Ends it.
    pub fn done(self) -> EvidenceManifest {
        self.manifest
    }

    /// Whole or not at all: a reader never sees half of it.
    fn save(&self) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.manifest).map_err(io::Error::other)?;
        let (path, new) = (self.directory.join(MANIFEST), self.directory.join("evidence.json.new"));
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(slowpath_tables::escape_json(&text).as_bytes())?;
        file.write_all(b"\n")?;
        fs::rename(new, path)
    }
}
