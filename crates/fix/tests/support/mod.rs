//! Files of our own whose pages can be thrown out and counted.

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::unistd::geteuid;
use slowpath_fix::preload_plan::{PlanOptions, PlannedFile, PlannedRange, PreloadPlan};
use slowpath_tables::Pages;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Writes a file of some pages and throws them out of the page cache.
pub fn cold_file(path: &Path, pages: usize) {
    fs::write(path, vec![7u8; pages * 4096]).unwrap();
    evict(path);
}

/// Throws a file's pages out of the page cache; they must be clean for that.
pub fn evict(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).unwrap();
}

/// Which pages of a file were brought into the page cache since they were thrown out ([`evict`]). Those that the kernel reclaimed again
/// count: some machines (DAMON's pageout) reclaim pages within milliseconds, with any amount of memory free.
pub fn resident(path: &Path) -> Vec<bool> {
    let file = File::open(path).unwrap();
    let pages = in_page_cache(&file).into_iter().enumerate();
    pages.map(|(page, is_there)| is_there || was_reclaimed(&file, page)).collect()
}

/// Mapping without touching brings no page.
fn in_page_cache(file: &File) -> Vec<bool> {
    let length = file.metadata().unwrap().len() as usize;
    let mut pages = vec![0u8; length.div_ceil(4096)];
    // SAFETY: maps a whole existing file read-only, asks about that range only, and unmaps it.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED);
        assert_eq!(libc::mincore(at, length, pages.as_mut_ptr()), 0);
        libc::munmap(at, length);
    }
    pages.into_iter().map(|page| page & 1 == 1).collect()
}

/// Whether the kernel remembers that it reclaimed the page: it does for pages that it chose, not for those that `POSIX_FADV_DONTNEED`
/// names (`workingset_eviction` in mm/workingset.c, `mapping_evict_folio` in mm/truncate.c). False before Linux 6.5.
fn was_reclaimed(file: &File, page: usize) -> bool {
    /// `cachestat(2)`, one number for all architectures.
    const SYS_CACHESTAT: libc::c_long = 451;
    let range = [page as u64 * 4096, 4096];
    // nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted (include/uapi/linux/mman.h).
    let mut counts = [0u64; 5];
    // SAFETY: reads one `struct cachestat_range` and writes one `struct cachestat`; flags must be 0.
    let result = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), 0) };
    result == 0 && counts[3] > 0
}

/// Waits until as many pages are in the page cache; requests return before their data are there, and a busy disk takes its time.
pub fn wait_for_resident(path: &Path, pages: usize) -> Vec<bool> {
    let begun = Instant::now();
    loop {
        let resident = resident(path);
        if resident.iter().filter(|page| **page).count() >= pages || begun.elapsed() > Duration::from_secs(60) {
            return resident;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The plan's entry for a file as it is now.
pub fn planned(path: &Path) -> PlannedFile {
    let status = fs::metadata(path).unwrap();
    PlannedFile {
        path: path.to_str().unwrap().to_owned(),
        size: status.len(),
        mtime_ns: status.mtime() * 1_000_000_000 + status.mtime_nsec(),
        build_id: None,
    }
}

/// A plan over some files.
pub fn plan(files: Vec<PlannedFile>, ranges: &[(u32, u64, u64)]) -> PreloadPlan {
    let range = |&(file, page, pages): &(u32, u64, u64)| PlannedRange { file, page: Pages(page), pages: Pages(pages) };
    PreloadPlan { files, ranges: ranges.iter().map(range).collect(), ..PreloadPlan::default() }
}

/// The same with other options.
#[allow(dead_code)] // not every test program uses it
pub fn with_options(plan: PreloadPlan, options: PlanOptions) -> PreloadPlan {
    PreloadPlan { options, ..plan }
}

/// A directory without symbolic links in its path, on a file system that keeps files in the page cache.
pub fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().canonicalize().unwrap();
    (directory, path)
}

/// What `work` gives where a file system is mounted at `at`, a new directory, that never answers. Only its thread, and what that starts, sees
/// the mount. `None` with a line that says so where that cannot be; fails where it takes a minute.
#[allow(dead_code)] // not every test program uses it
pub fn beside_one_that_never_answers<T: Send + 'static>(
    at: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};
    let Some(fuse) = File::options().read(true).write(true).open("/dev/fuse").ok().filter(|_| geteuid().is_root())
    else {
        eprintln!("skipped: FUSE needs root and /dev/fuse");
        return None;
    };
    fs::create_dir(at).unwrap();
    let (at, options) = (at.to_owned(), format!("fd={},rootmode=40000,user_id=0,group_id=0", fuse.as_raw_fd()));
    let (give, given) = std::sync::mpsc::channel();
    let working = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS).unwrap();
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>).unwrap();
        mount(Some("slowpath-test"), &at, Some("fuse"), MsFlags::empty(), Some(options.as_str())).unwrap();
        give.send(work()).unwrap();
    });
    let done = given.recv_timeout(Duration::from_secs(60));
    // Nobody has read what it was asked. Who waits for it goes on with an error.
    drop(fuse);
    working.join().unwrap();
    Some(done.expect("it waits for the file system"))
}
