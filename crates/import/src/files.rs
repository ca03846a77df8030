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
    /// Those that were at a path where another one was before, by their build ids.
    by_build_id: HashMap<(Box<str>, String), FileKey>,
    has_row: HashSet<FileKey>,
    /// Build ids in hexadecimal, where the trace has them before the file; none where it has several for one path.
    build_ids: HashMap<Box<str>, Option<String>>,
    /// What identifies the content of files.
    identities: HashMap<FileKey, String>,
    /// Whether there were more than fit.
    pub is_full: bool,
}

impl Files {
    /// The file at this path, and its row where it is new.
    pub fn at(&mut self, path: &str) -> (FileKey, Option<File>) {
        if let Some(key) = self.by_path.get(path) {
            return (*key, None);
        }
        let Some(key) = self.new_key() else { return (FileKey { dev: NO_DEVICE, ino: 0 }, None) };
        self.by_path.insert(path.into(), key);
        let build_id = self.build_ids.get(path).cloned().flatten();
        (key, Some(self.row(key, path, build_id)))
    }

    /// The file that is at this path and has this build id, and its row where it is new. It is another one than what else was there.
    pub fn with_build_id(&mut self, path: &str, build_id: &str) -> (FileKey, Option<File>) {
        match self.by_path.get(path) {
            None => {
                if self.build_ids.len() < MOST_FILES {
                    self.build_ids.insert(path.into(), Some(build_id.to_owned()));
                }
                self.at(path)
            }
            Some(key) if self.identities.get(key).is_some_and(|known| known == build_id) => (*key, None),
            Some(_) => {
                let name = (Box::from(path), build_id.to_owned());
                if let Some(key) = self.by_build_id.get(&name) {
                    return (*key, None);
                }
                let Some(key) = self.new_key() else { return (FileKey { dev: NO_DEVICE, ino: 0 }, None) };
                self.by_build_id.insert(name, key);
                (key, Some(self.row(key, path, Some(build_id.to_owned()))))
            }
        }
    }

    /// A number for a file that has none; none where there are too many.
    fn new_key(&mut self) -> Option<FileKey> {
        let count = self.by_path.len() + self.by_build_id.len();
        self.is_full |= count >= MOST_FILES;
        (count < MOST_FILES).then_some(FileKey { dev: NO_DEVICE, ino: count as u64 + 1 })
    }

    /// The file at this path was built as this; for files that have no row yet.
    pub fn built(&mut self, path: &str, build_id: String) {
        if self.build_ids.len() >= MOST_FILES || self.by_path.contains_key(path) {
            return;
        }
        match self.build_ids.entry(path.into()) {
            Entry::Vacant(place) => {
                place.insert(Some(build_id));
            }
            // There were several, and which of them is meant cannot be known.
            Entry::Occupied(mut known) if known.get().as_ref() != Some(&build_id) => {
                known.insert(None);
            }
            Entry::Occupied(_) => {}
        }
    }

    /// The build id of what is at this path, where the trace has one.
    pub fn build_id_at(&self, path: &str) -> Option<&str> {
        self.build_ids.get(path)?.as_deref()
    }

    /// The build id of a file, where the trace has one.
    pub fn build_id(&self, file: FileKey) -> Option<&str> {
        self.identities.get(&file).map(String::as_str)
    }

    /// Paths of files.
    pub fn paths(&self) -> HashMap<FileKey, &str> {
        let others = self.by_build_id.iter().map(|((path, _), key)| (*key, &**path));
        self.by_path.iter().map(|(path, key)| (*key, &**path)).chain(others).collect()
    }

    /// The file at this path has this identity; its row where it is new.
    pub fn identify(&mut self, path: &str, key: FileKey) -> Option<File> {
        if self.by_path.len() >= MOST_FILES || self.has_row.len() >= MOST_FILES {
            self.is_full = true;
            return None;
        }
        match self.by_path.entry(path.into()) {
            // It has events under its former name: it keeps it. A build id of the path may be that of either.
            Entry::Occupied(known) => {
                if *known.get() != key && known.get().dev != NO_DEVICE {
                    self.identities.remove(known.get());
                }
                None
            }
            Entry::Vacant(place) => {
                place.insert(key);
                if !self.has_row.insert(key) {
                    return None;
                }
                let build_id = self.build_ids.get(path).cloned().flatten();
                Some(self.row(key, path, build_id))
            }
        }
    }

    fn row(&mut self, key: FileKey, path: &str, build_id: Option<String>) -> File {
        if let Some(build_id) = &build_id {
            self.identities.insert(key, build_id.clone());
        }
        File {
            dev: key.dev,
            ino: key.ino,
            path: path.to_owned(),
            directory: false,
            size: None::<Bytes>,
            mtime: None,
            build_id,
            host_dev: None,
            host_ino: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_build_id_where_it_is_the_only_one_of_its_path() {
        let mut files = Files::default();
        files.built("/a", "aa".to_owned());
        files.built("/b", "b1".to_owned());
        files.built("/b", "b2".to_owned());
        files.built("/c", "cc".to_owned());
        let (a, row) = files.at("/a");
        assert_eq!(row.and_then(|row| row.build_id).as_deref(), Some("aa"));
        let (b, row) = files.at("/b");
        assert_eq!((row.and_then(|row| row.build_id), files.build_id(b)), (None, None));
        // Another inode at the same path: one of the two has the build id.
        let c = FileKey { dev: 5, ino: 7 };
        files.identify("/c", c);
        assert_eq!(files.build_id(c), Some("cc"));
        files.identify("/c", c);
        assert_eq!(files.build_id(c), Some("cc"));
        files.identify("/c", FileKey { dev: 5, ino: 8 });
        assert_eq!((files.build_id(c), files.build_id(a)), (None, Some("aa")));
    }

    #[test]
    fn a_file_that_replaced_another_is_one_of_its_own() {
        let mut files = Files::default();
        let (old, row) = files.with_build_id("/a", "01");
        assert_eq!(row.and_then(|row| row.build_id).as_deref(), Some("01"));
        let (new, row) = files.with_build_id("/a", "02");
        assert_eq!(row.map(|row| (row.path, row.build_id)), Some(("/a".to_owned(), Some("02".to_owned()))));
        let (other, _) = files.at("/b");
        assert_eq!((files.with_build_id("/a", "01"), files.with_build_id("/a", "02")), ((old, None), (new, None)));
        assert_eq!(HashSet::from([old, new, other]).len(), 3);
        let paths = files.paths();
        assert_eq!((paths[&old], paths[&new], paths[&other]), ("/a", "/a", "/b"));
        assert_eq!((files.build_id(old), files.build_id(new), files.build_id(other)), (Some("01"), Some("02"), None));
    }
}
