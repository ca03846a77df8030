//! File names from the directory entries that the probes reported: (device, inode) to its path inside the file system.

use crate::events::{name_event, text};
use slowpath_tables::FileKey;
use std::collections::{BTreeSet, HashMap};

#[derive(Clone, Debug)]
struct Entry {
    parent: u64,
    name: String,
    is_root: bool,
    mode: u32,
}

/// All directory entries that were reported.
#[derive(Default)]
pub(crate) struct Names {
    entries: HashMap<FileKey, Entry>,
    fresh: BTreeSet<FileKey>,
}

impl Names {
    pub(crate) fn learn(&mut self, event: &name_event) {
        let entry =
            Entry { parent: event.parent_ino, name: text(&event.name), is_root: event.is_root != 0, mode: event.mode };
        let file = FileKey { dev: event.dev, ino: event.ino };
        self.entries.insert(file, entry);
        self.fresh.insert(file);
    }

    /// Path from the root of the file system, or `None` when the chain is broken or the file has no name there
    /// (anonymous files of tmpfs and memfd have one that is no path).
    pub(crate) fn path(&self, file: FileKey) -> Option<String> {
        let mut parts = Vec::new();
        let mut at = file;
        for _ in 0..64 {
            let entry = self.entries.get(&at)?;
            if entry.is_root {
                parts.reverse();
                return Some(format!("/{}", parts.join("/")));
            }
            parts.push(entry.name.as_str());
            at = FileKey { dev: at.dev, ino: entry.parent };
        }
        None
    }

    /// Last part of the name, whatever the chain.
    pub(crate) fn last_name(&self, file: FileKey) -> Option<&str> {
        self.entries.get(&file).map(|entry| entry.name.as_str())
    }

    pub(crate) fn is_directory(&self, file: FileKey) -> bool {
        self.entries.get(&file).is_some_and(|entry| entry.mode & 0o170_000 == 0o040_000)
    }

    /// Files and directories that were reported since this was asked last.
    pub(crate) fn take_fresh(&mut self) -> BTreeSet<FileKey> {
        std::mem::take(&mut self.fresh)
    }
}
