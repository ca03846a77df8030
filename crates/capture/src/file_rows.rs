//! The rows of `files`: one for every file that another row names, and one more where its name was learnt later; the last
//! counts. In a lab, rows that name a file of an overlay are moved to the file below.

use crate::mounts::{Mount, host_path};
use crate::names::Names;
use slowpath_recording::Tables;
use slowpath_tables::{Exec, File, FileKey, PageCache, Read, Readahead};
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Path of the pages of a block device itself: its file system's metadata (directories, inodes, extents).
pub const METADATA: &str = "[file system metadata]";

/// Which paths files have on the host, by where the recorded processes see them.
#[derive(Default)]
pub(crate) struct HostPaths {
    pub(crate) mounts: Vec<Mount>,
    /// The lab's image mirrors the host's paths.
    pub(crate) lab_dev: Option<u64>,
}

impl HostPaths {
    /// Canonical host path of a file that has one.
    pub(crate) fn path(&self, names: &Names, file: FileKey) -> Option<String> {
        let inside = names.path(file)?;
        if self.lab_dev == Some(file.dev) { Some(inside) } else { host_path(&self.mounts, file.dev, &inside) }
    }

    /// Whether a file system is seen in one place only.
    pub(crate) fn is_mounted_once(&self, dev: u64) -> bool {
        self.lab_dev == Some(dev) || self.mounts.iter().filter(|mount| mount.dev == dev).count() == 1
    }
}

fn pair(dev: Option<u64>, ino: Option<u64>) -> Option<FileKey> {
    dev.zip(ino).map(|(dev, ino)| FileKey { dev, ino })
}

/// The files that were reported, and those that are to be.
#[derive(Default)]
pub(crate) struct Files {
    /// Named by rows and not reported yet.
    wanted: BTreeSet<FileKey>,
    /// Hash of what was reported of each file.
    reported: HashMap<FileKey, u64>,
    /// Reported without a path.
    pathless: BTreeSet<FileKey>,
}

impl Files {
    /// Takes the files that these rows name.
    pub(crate) fn want(&mut self, rows: &Tables) {
        let mut named: BTreeSet<FileKey> = BTreeSet::new();
        named.extend(rows.execs.iter().map(Exec::file));
        named.extend(rows.page_cache.iter().map(PageCache::file));
        named.extend(rows.readaheads.iter().map(Readahead::file));
        named.extend(rows.reads.iter().map(Read::file));
        named.extend(rows.mappings.iter().filter_map(|row| pair(row.dev, row.ino)));
        named.extend(rows.frames.iter().filter_map(|row| pair(row.dev, row.ino)));
        named.extend(rows.opens.iter().filter_map(|row| pair(row.dev, row.ino)));
        self.wanted.extend(named.into_iter().filter(|file| !self.reported.contains_key(file)));
    }

    /// Rows of the files that are new, and of those of which `fresh` names, or the end, tell more.
    pub(crate) fn rows(
        &mut self,
        names: &Names,
        fresh: &BTreeSet<FileKey>,
        host_paths: &HostPaths,
        is_end: bool,
    ) -> Vec<File> {
        let mut due = std::mem::take(&mut self.wanted);
        if is_end {
            // A directory may have been reported anew: paths of all files are looked at once more.
            due.extend(self.reported.keys());
        } else if !fresh.is_empty() {
            due.extend(fresh.iter().filter(|file| self.reported.contains_key(file)));
            due.extend(&self.pathless);
        }
        due.into_iter().filter_map(|file| self.row(file, names, host_paths)).collect()
    }

    /// The row of a file, unless the very same was reported. A file without a path is called by its last name in brackets.
    fn row(&mut self, file: FileKey, names: &Names, host_paths: &HostPaths) -> Option<File> {
        let path = host_paths.path(names, file);
        let is_pathless = path.is_none() && file.ino != 0;
        let path = path.unwrap_or_else(|| match file.ino {
            0 => METADATA.to_owned(),
            _ => format!("[{}]", names.last_name(file).unwrap_or("unnamed")),
        });
        let directory = names.is_directory(file);
        let mut hasher = DefaultHasher::new();
        (&path, directory).hash(&mut hasher);
        if self.reported.insert(file, hasher.finish()) == Some(hasher.finish()) {
            return None;
        }
        let _ = if is_pathless { self.pathless.insert(file) } else { self.pathless.remove(&file) };
        Some(File {
            dev: file.dev,
            ino: file.ino,
            path,
            directory,
            size: None,
            mtime: None,
            build_id: None,
            host_dev: None,
            host_ino: None,
        })
    }
}

/// In a lab a program opens a file through an overlay, which has inodes of its own, while its pages belong to the
/// file below. Rows are moved to the file below: the one in the lab where it holds it, else the host's.
#[derive(Default)]
pub(crate) struct Overlays {
    devices: BTreeSet<u64>,
    below: HashMap<String, FileKey>,
    /// Files whose path was not whole yet.
    incomplete: BTreeSet<FileKey>,
}

impl Overlays {
    pub(crate) fn of(mounts: &[Mount]) -> Self {
        let devices = mounts.iter().filter(|mount| mount.fs == "overlay").map(|mount| mount.dev).collect();
        Self { devices, ..Self::default() }
    }

    /// Moves rows, by what is known now; `fresh` are the files that were named since the last time.
    pub(crate) fn join(&mut self, rows: &mut Tables, names: &Names, fresh: &BTreeSet<FileKey>, host_paths: &HostPaths) {
        if self.devices.is_empty() {
            return;
        }
        self.incomplete.extend(fresh.iter().filter(|file| !self.devices.contains(&file.dev)));
        for file in std::mem::take(&mut self.incomplete) {
            let Some(path) = host_paths.path(names, file) else {
                self.incomplete.insert(file);
                continue;
            };
            let slot = self.below.entry(path).or_insert(file);
            if host_paths.lab_dev == Some(file.dev) {
                *slot = file;
            }
        }
        let mut known: HashMap<FileKey, Option<FileKey>> = HashMap::new();
        let mut moved = |file: FileKey| -> Option<FileKey> {
            let find = || self.below.get(host_paths.path(names, file)?.as_str()).copied();
            if self.devices.contains(&file.dev) { *known.entry(file).or_insert_with(find) } else { None }
        };
        for exec in &mut rows.execs {
            if let Some(to) = moved(exec.file()) {
                (exec.dev, exec.ino) = (to.dev, to.ino);
            }
        }
        for read in &mut rows.reads {
            if let Some(to) = moved(read.file()) {
                (read.dev, read.ino) = (to.dev, to.ino);
            }
        }
        let mut optional = |dev: &mut Option<u64>, ino: &mut Option<u64>| {
            if let Some(to) = pair(*dev, *ino).and_then(&mut moved) {
                (*dev, *ino) = (Some(to.dev), Some(to.ino));
            }
        };
        for mapping in &mut rows.mappings {
            optional(&mut mapping.dev, &mut mapping.ino);
        }
        for frame in &mut rows.frames {
            optional(&mut frame.dev, &mut frame.ino);
        }
        for open in &mut rows.opens {
            optional(&mut open.dev, &mut open.ino);
        }
    }
}
