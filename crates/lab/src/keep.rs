//! Keeps the lab's file system alive between two launches, so that the second one is warm: a mount that is attached
//! nowhere (fsmount(2)) shares the superblock with the mounts of the launches, and vanishes with its descriptor. What a launch is
//! known to read can be read into memory through it before that launch.

use crate::device::cached_pages_in;
use crate::error::failed;
use crate::{Lab, LabError};
use rustix::fd::OwnedFd;
use rustix::fs::{Advice, Mode, OFlags, ResolveFlags, fadvise, openat2};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use rustix::mount::{fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen};
use serde::{Deserialize, Serialize};
use slowpath_tables::{Bytes, FileKey, Pages};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// What is read at once.
const CHUNK: Pages = Pages(256);

/// While it lives, pages of the lab's files stay in memory; when it is dropped, the next launch is cold again.
#[derive(Debug)]
pub struct KeptMounted {
    mount: OwnedFd,
}

/// Pages of a file of the image that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PageRun {
    /// The file, as events of a launch name it.
    pub file: FileKey,
    /// The first page.
    pub first: Pages,
    /// How many.
    pub pages: Pages,
}

impl PageRun {
    /// The same pages in the order of files and pages, each once.
    pub fn joined(mut runs: Vec<Self>) -> Vec<Self> {
        runs.sort_unstable();
        let mut joined: Vec<Self> = Vec::new();
        for run in runs {
            match joined.last_mut() {
                Some(last) if last.file == run.file && run.first <= last.end() => {
                    last.pages = last.end().max(run.end()) - last.first;
                }
                _ => joined.push(run),
            }
        }
        joined
    }

    fn end(self) -> Pages {
        Pages(self.first.0.saturating_add(self.pages.0))
    }

    /// Adds the parts of it that are in memory: halves until a part is there whole, or not at all.
    fn cached(self, file: &File, runs: &mut Vec<Self>) -> io::Result<()> {
        if self.pages == Pages(0) {
            return Ok(());
        }
        let there = cached_pages_in(file, self.first.bytes(), self.pages.bytes())?;
        if there >= self.pages {
            runs.push(self);
        } else if there > Pages(0) {
            let half = Pages(self.pages.0 / 2);
            Self { pages: half, ..self }.cached(file, runs)?;
            Self { first: self.first + half, pages: self.pages - half, ..self }.cached(file, runs)?;
        }
        Ok(())
    }

    /// Reads what is not in memory of a file of so many pages.
    fn read(self, file: &File, size: Pages, buffer: &mut [u8]) -> io::Result<()> {
        let (mut at, end) = (self.first, self.end().min(size));
        while at < end {
            let pages = CHUNK.min(end - at);
            if cached_pages_in(file, at.bytes(), pages.bytes())? < pages {
                file.read_at(&mut buffer[..pages.bytes().0 as usize], at.bytes().0)?;
            }
            at += pages;
        }
        Ok(())
    }
}

fn mount_detached(device: &Path) -> rustix::io::Result<OwnedFd> {
    let context = fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", device)?;
    fsconfig_set_flag(&context, "ro")?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

impl Lab {
    /// Mounts the image where nobody sees it, so that what one launch reads is still there for the next.
    ///
    /// # Errors
    /// The kernel refuses the mount.
    pub fn keep_mounted(&self) -> Result<KeptMounted, LabError> {
        let mount = mount_detached(&self.device().path()).map_err(|errno| LabError::KeepMounted(errno.into()))?;
        Ok(KeptMounted { mount })
    }

    /// Reads these pages of the image's files, where they are not in memory yet. Not throttled: this process is not in the lab's cgroup.
    /// It ends where `stops` says so, which is asked before each file.
    ///
    /// # Errors
    /// A file of the image cannot be read.
    pub fn read_into_memory(
        &self,
        kept: &KeptMounted,
        runs: &[PageRun],
        mut stops: impl FnMut() -> bool,
    ) -> Result<(), LabError> {
        let mut buffer = vec![0; CHUNK.bytes().0 as usize];
        for of_one_file in runs.chunk_by(|one, next| one.file == next.file) {
            let key = of_one_file[0].file;
            let Some(path) = self.host_path(key) else { continue };
            if stops() {
                break;
            }
            let (file, size) = kept.open(path, key).map_err(failed("open in the lab", path))?;
            for run in of_one_file {
                run.read(&file, size, &mut buffer).map_err(failed("read in the lab", path))?;
            }
        }
        Ok(())
    }

    /// Pages of the image's files that are in memory.
    ///
    /// # Errors
    /// A file of the image cannot be opened, or the kernel does not say what is in memory.
    pub fn in_memory(&self, kept: &KeptMounted) -> Result<Vec<PageRun>, LabError> {
        let mut runs = Vec::new();
        for known in self.image().files() {
            let key = FileKey { dev: self.device().dev(), ino: known.image_inode };
            let (file, pages) = kept.open(&known.path, key).map_err(failed("open in the lab", &known.path))?;
            let whole = PageRun { file: key, first: Pages(0), pages };
            whole.cached(&file, &mut runs).map_err(failed("look at the cached pages in the lab of", &known.path))?;
        }
        Ok(PageRun::joined(runs))
    }
}

impl KeptMounted {
    /// A file of the image, by its canonical path, which has no link in it, and how many pages it has.
    fn open(&self, path: &Path, key: FileKey) -> io::Result<(File, Pages)> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let inside = path.strip_prefix("/").unwrap_or(path);
        let file = File::from(openat2(&self.mount, inside, flags, Mode::empty(), resolve)?);
        let found = file.metadata()?;
        if found.ino() != key.ino {
            return Err(io::Error::from_raw_os_error(libc::ESTALE));
        }
        // No readahead: it would go on beyond what was asked for, also while the launch runs that is to read nothing.
        fadvise(&file, 0, None, Advice::Random)?;
        Ok((file, Bytes(found.len()).pages_up()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_by_file_and_page() {
        let run =
            |ino, first, pages| PageRun { file: FileKey { dev: 1, ino }, first: Pages(first), pages: Pages(pages) };
        let runs = vec![run(2, 0, 1), run(1, 4, 4), run(1, 0, 4), run(1, 5, 1), run(1, 9, 1), run(2, 0, u64::MAX)];
        assert_eq!(PageRun::joined(runs), [run(1, 0, 8), run(1, 9, 1), run(2, 0, u64::MAX)]);
        assert_eq!(PageRun::joined(Vec::new()), []);
    }
}
