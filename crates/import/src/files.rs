//! The files of a trace: known by device and inode where the tool names them, else by path.

use slowpath_tables::{Bytes, File, FileKey};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// Files at most; what more a trace names is the one file without a name.
const MOST_FILES: usize = 1 << 20;

/// Device of files whose own is not known. No file system has it (`include/uapi/linux/major.h`: 0 is for unnamed ones, whose
/// minors begin at 1).
const NO_DEVICE: u64 = 0;

/// Files by path, and those that have a row already.
#[derive(Debug, Default)]
pub struct Files {
    by_path: HashMap<Box<str>, FileKey>,
    has_row: HashSet<FileKey>,
    /// Build ids in hexadecimal, where the trace has them before the file.
    build_ids: HashMap<Box<str>, String>,
    /// Whether there were more than fit.
    pub is_full: bool,
}

impl Files {
    /// The file at this path, and its row where it is new.
    pub fn at(&mut self, path: &str) -> (FileKey, Option<File>) {
        if let Some(key) = self.by_path.get(path) {
            return (*key, None);
        }
        if self.by_path.len() >= MOST_FILES {
            self.is_full = true;
            return (FileKey { dev: NO_DEVICE, ino: 0 }, None);
        }
        let key = FileKey { dev: NO_DEVICE, ino: self.by_path.len() as u64 + 1 };
        self.by_path.insert(path.into(), key);
        (key, Some(self.row(key, path)))
    }

    /// The file at this path was built as this; for files that have no row yet.
    pub fn built(&mut self, path: &str, build_id: String) {
        if self.build_ids.len() < MOST_FILES && !self.by_path.contains_key(path) {
            self.build_ids.insert(path.into(), build_id);
        }
    }

    /// The file at this path has this identity; its row where it is new.
    pub fn identify(&mut self, path: &str, key: FileKey) -> Option<File> {
        if self.by_path.len() >= MOST_FILES || self.has_row.len() >= MOST_FILES {
            self.is_full = true;
            return None;
        }
        match self.by_path.entry(path.into()) {
            // It has events under its former name: it keeps it.
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                place.insert(key);
                self.has_row.insert(key).then(|| self.row(key, path))
            }
        }
    }

    fn row(&self, key: FileKey, path: &str) -> File {
        File {
            dev: key.dev,
            ino: key.ino,
            path: path.to_owned(),
            directory: false,
            size: None::<Bytes>,
            mtime: None,
            build_id: self.build_ids.get(path).cloned(),
            host_dev: None,
            host_ino: None,
        }
    }
}
