//! What the kernel says of a block device and of page caches: read counters, readahead, cached pages, and whether a
//! file system lives on it.

use crate::error::{LabError, failed};
use serde::Serialize;
use slowpath_process::page_size;
use slowpath_tables::{Bytes, Pages};
use std::fs::{self, File};
use std::io;
use std::ops::Sub;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// `BLKFLSBUF` of `include/uapi/linux/fs.h`: writes back and drops the device's own page cache.
const BLKFLSBUF: libc::c_ulong = 0x1261;

/// The system call's number on every architecture (`include/uapi/asm-generic/unistd.h`).
const SYS_CACHESTAT: libc::c_long = 451;

/// What a device delivered, from `/sys/block/*/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceIo {
    /// Completed read requests.
    pub reads: u64,
    /// Sectors of 512 bytes read.
    pub sectors: u64,
    /// The same in bytes.
    pub bytes: Bytes,
}

impl Sub for DeviceIo {
    type Output = Self;
    /// What was delivered since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            sectors: self.sectors.saturating_sub(earlier.sectors),
            bytes: self.bytes - earlier.bytes,
        }
    }
}

/// Read counters of the device named `name` since it exists.
pub(crate) fn io_of(name: &str) -> Result<DeviceIo, LabError> {
    let path = PathBuf::from(format!("/sys/block/{name}/stat"));
    let text = fs::read_to_string(&path).map_err(failed("read", &path))?;
    parse_stat(&text).ok_or_else(|| failed("understand", &path)(io::Error::from(io::ErrorKind::InvalidData)))
}

/// Fields of Documentation/block/stat.rst: read I/Os, read merges, read sectors, ...
fn parse_stat(text: &str) -> Option<DeviceIo> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    let reads = fields.next()?.ok()?;
    let sectors = fields.nth(1)?.ok()?;
    Some(DeviceIo { reads, sectors, bytes: Bytes(sectors.checked_mul(512)?) })
}

/// Sets the readahead window; files opened from now on have it.
pub(crate) fn set_read_ahead(name: &str, kilobytes: u64) -> Result<(), LabError> {
    let path = PathBuf::from(format!("/sys/block/{name}/queue/read_ahead_kb"));
    fs::write(&path, kilobytes.to_string()).map_err(failed("set", &path))
}

/// Whether an ext4 superblock of the device is alive. Its directory in sysfs disappears in `ext4_put_super`, after
/// the kernel has evicted every inode and with them every cached page of every file.
pub(crate) fn superblock_alive(name: &str) -> bool {
    Path::new("/sys/fs/ext4").join(name).exists()
}

/// Drops the device's own page cache (a file system's metadata).
pub(crate) fn flush(device: &File) -> io::Result<()> {
    // SAFETY: the request takes no argument.
    match unsafe { libc::ioctl(device.as_raw_fd(), BLKFLSBUF as _, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Pages of an open file or block device that are in the page cache now (`cachestat(2)`, Linux 6.5).
pub(crate) fn cached_pages(file: &File) -> io::Result<Pages> {
    // A length of 0 means: to the end.
    cached_pages_in(file, Bytes(0), Bytes(0))
}

/// The same of a range that begins and ends with a page.
pub(crate) fn cached_pages_in(file: &File, offset: Bytes, length: Bytes) -> io::Result<Pages> {
    #[repr(C)]
    struct Range {
        offset: u64,
        length: u64,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Stat {
        cached: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let (range, mut stat) = (Range { offset: offset.0, length: length.0 }, Stat::default());
    // SAFETY: reads one `struct cachestat_range`, writes one `struct cachestat`; flags must be 0.
    match unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, 0) } {
        // The kernel counts in its own pages.
        0 => Ok(Bytes(stat.cached.saturating_mul(page_size())).pages_up()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Drops the clean cached pages of a file.
pub(crate) fn forget_pages(file: &File) -> io::Result<()> {
    // SAFETY: takes an open descriptor and numbers only.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_of_a_device_are_its_third_number() {
        let io = parse_stat("    8     3   432   1    0 0 0 0 0 0 0\n").unwrap();
        assert_eq!((io.reads, io.sectors, io.bytes), (8, 432, Bytes(432 * 512)));
        assert_eq!(parse_stat("8 3"), None);
    }

    #[test]
    fn pages_written_to_a_file_are_seen_as_cached_until_they_are_forgotten() {
        use std::io::Write;
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all(&[1; 3 * 4096 + 1]).unwrap();
        assert_eq!(cached_pages(&file).unwrap(), Pages(4));
        file.sync_all().unwrap();
        forget_pages(&file).unwrap();
        assert_eq!(cached_pages(&file).unwrap(), Pages(0));
    }
}
