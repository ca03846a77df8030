//! Writing evidence: every file as soon as it came, and the manifest anew after it, so that what was collected stays whatever comes next.

use super::{EvidenceManifest, MANIFEST, Step};
use crate::whole_json;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of all files together. The device chooses how many there are and what is in them.
const MOST_BYTES: u64 = 1 << 30;

/// What a file or directory takes at least, of whatever size: a block, as most file systems have them.
const BLOCK: u64 = 4096;

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
        self.add(bytes.len() as u64)?;
        let path = self.place_of(name)?;
        File::options().append(true).create(true).mode(0o600).open(path)?.write_all(bytes)
    }

    /// Where a file of the evidence is to be, with the directories above it.
    ///
    /// # Errors
    /// They cannot be made, or all files together would be too large.
    pub fn place_of(&mut self, name: &str) -> io::Result<PathBuf> {
        let path = self.directory.join(name);
        let new = path.ancestors().take_while(|path| fs::symlink_metadata(path).is_err()).count() as u64;
        self.add(new.saturating_mul(BLOCK))?;
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        Ok(path)
    }

    /// Counts the bytes of a file that another program wrote to its place. Where all files together are too large by it, it is removed.
    ///
    /// # Errors
    /// They are.
    pub fn count(&mut self, name: &str, bytes: u64) -> io::Result<()> {
        self.add(bytes).inspect_err(|_| {
            let _ = fs::remove_file(self.directory.join(name));
        })
    }

    fn add(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MOST_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the evidence would have more than 1 GiB"));
        }
        Ok(())
    }

    /// Notes a step.
    ///
    /// # Errors
    /// The manifest cannot be written, or all files together would be too large.
    pub fn note(&mut self, step: Step) -> io::Result<()> {
        // Its words are the device's, too.
        self.add(serde_json::to_vec(&step).map_err(io::Error::other)?.len() as u64)?;
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

    fn save(&self) -> io::Result<()> {
        whole_json::replace(&self.directory.join(MANIFEST), &self.manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_together_have_a_limit_whoever_writes_them() {
        let place = tempfile::tempdir().unwrap();
        let manifest = EvidenceManifest::new(String::new(), String::new(), String::new(), Vec::new());
        let mut writer = EvidenceWriter::begin(place.path(), manifest).unwrap();
        writer.append("id.txt", b"uid=0").unwrap();
        assert_eq!(writer.bytes, BLOCK + 5);
        let to = writer.place_of("files/data/a.vdex").unwrap();
        fs::write(&to, b"vdex").unwrap();
        writer.count("files/data/a.vdex", 4).unwrap();
        assert_eq!(writer.bytes, 4 * BLOCK + 9);
        writer.place_of("files/data/a.vdex").unwrap();
        assert_eq!(writer.bytes, 4 * BLOCK + 9, "it is there already");
        writer.bytes = MOST_BYTES - 3;
        let over = writer.count("files/data/a.vdex", 4).unwrap_err();
        assert_eq!(over.kind(), io::ErrorKind::FileTooLarge);
        assert!(!to.exists() && place.path().join("id.txt").exists());
        assert!(
            writer.append("id.txt", b"").is_err()
                && writer.place_of("b/c").is_err()
                && !place.path().join("b").exists()
        );
    }
}
