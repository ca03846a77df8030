//! Colder launches without a lab: the files of a command are evicted from the page cache, as far as the kernel lets go of
//! them. Pages that another process maps stay (libc, the loader), and so do pages that were written and are not on disk
//! yet; how many stayed is counted, never guessed.

use crate::closure::{irregular, resolve};
use crate::device::{cached_pages, forget_pages};
use crate::fill::readable;
use rustix::fs::fstat;
use slowpath_process::MountTable;
use slowpath_tables::Pages;
use std::fs::File;
use std::path::Path;

/// What an eviction left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    /// Files that were looked at.
    pub files: u64,
    /// Their pages that were in memory before.
    pub before: Pages,
    /// Their pages that are in memory still.
    pub stayed: Pages,
    /// Files that could not be opened (gone, unreadable), which may be warm.
    pub unopened: u64,
}

/// Evicts the regular files of `paths` from the page cache and counts what stayed.
///
/// Evicting is asked for by `posix_fadvise(POSIX_FADV_DONTNEED)`, which any reader of a file may do and which takes
/// nothing from anybody but the time to read it again.
pub fn evict<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Evicted {
    each(paths, |file| {
        // A file that cannot be evicted shows in what stayed.
        let _ = forget_pages(file);
    })
}

/// Counts the pages of `paths` that are in memory, without evicting any.
pub fn resident<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Evicted {
    each(paths, |_| {})
}

fn each<'a>(paths: impl IntoIterator<Item = &'a Path>, work: impl Fn(&File)) -> Evicted {
    let mut all = Evicted::default();
    let mut table = MountTable::read().ok();
    for path in paths {
        // Opening must not wait, and must not touch what is no file.
        let place = table.as_mut().and_then(|table| resolve(path, table).ok()).map(|(_, place)| place);
        let regular = place.filter(|place| fstat(place).is_ok_and(|found| irregular(&found).is_none()));
        let Some(file) = regular.and_then(|place| readable(&place).ok()) else {
            all.unopened += 1;
            continue;
        };
        let before = cached_pages(&file);
        work(&file);
        let (Ok(before), Ok(stayed)) = (before, cached_pages(&file)) else {
            all.unopened += 1;
            continue;
        };
        all.files += 1;
        all.before += before;
        all.stayed += stayed;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_nobody_maps_leaves_the_page_cache_whole() {
        // tmpfs keeps its pages: the file must lie on a disk.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, vec![1u8; 40 * 4096]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        let evicted = evict([path.as_path(), Path::new("/var/tmp"), Path::new("/nonexistent")]);
        assert_eq!((evicted.files, evicted.before, evicted.stayed), (1, Pages(40), Pages(0)));
        assert_eq!(evicted.unopened, 2);
        std::fs::read(&path).unwrap();
        assert_eq!(resident([path.as_path()]).stayed, Pages(40));
    }

    #[test]
    fn pages_that_a_process_maps_stay_and_are_counted() {
        // The C library of this very process.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc =
            maps.lines().find_map(|line| line.split_whitespace().nth(5).filter(|path| path.contains("libc"))).unwrap();
        let evicted = evict([Path::new(libc)]);
        assert!(evicted.stayed.0 > 10 && evicted.stayed <= evicted.before, "{evicted:?}");
    }
}
