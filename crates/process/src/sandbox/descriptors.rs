//! What a fork inherits and must not keep: descriptors, the terminal, memory that is shared with the kernel or a parent.

use crate::mapping::Mapping;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, isatty};
use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// What the worker may print to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printing {
    /// Nothing: standard output and standard error are `/dev/null`. What it has to say goes to its parent.
    Nowhere,
    /// Standard output and standard error of the command. Where they are a terminal it can be written and not be read.
    Terminal,
}

/// Replaces standard input by `/dev/null`, and what is printed to by what is allowed.
pub(super) fn set_standard(printing: Printing) -> io::Result<()> {
    let null: OwnedFd = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
    dup2_stdin(&null)?;
    if printing == Printing::Nowhere {
        dup2_stdout(&null)?;
        dup2_stderr(&null)?;
        return Ok(());
    }
    // A terminal comes open for reading too, which would give what is typed to the worker.
    write_only(1, |terminal| dup2_stdout(terminal))?;
    write_only(2, |terminal| dup2_stderr(terminal))
}

/// Opens a terminal anew, only for writing. Where that is refused (another user's terminal, none in this mount namespace) what there is
/// stays: whoever is refused here could not open it before either.
fn write_only(descriptor: RawFd, put: impl Fn(&OwnedFd) -> nix::Result<()>) -> io::Result<()> {
    // SAFETY: borrowed for this call only; a closed descriptor is answered with an error.
    let standard = unsafe { BorrowedFd::borrow_raw(descriptor) };
    if !isatty(standard).unwrap_or(false) {
        return Ok(());
    }
    let path = format!("/proc/self/fd/{descriptor}");
    match open(path.as_str(), OFlag::O_WRONLY | OFlag::O_NOCTTY | OFlag::O_CLOEXEC, Mode::empty()) {
        Ok(terminal) => Ok(put(&terminal)?),
        Err(_) => Ok(()),
    }
}

/// Closes everything from descriptor 3 on but `kept` (close_range(2); before Linux 5.9 one by one). For a fresh fork, in which nothing uses
/// the others any more.
///
/// # Errors
/// The kernel refuses.
pub fn close_all_but(kept: &[RawFd]) -> io::Result<()> {
    let mut kept: Vec<u32> = kept.iter().filter_map(|one| u32::try_from(*one).ok()).filter(|one| *one > 2).collect();
    kept.sort_unstable();
    kept.dedup();
    let mut first = 3;
    for one in kept {
        if first < one {
            close_range(first, one - 1)?;
        }
        first = one + 1;
    }
    close_range(first, u32::MAX)
}

/// Has everything from descriptor 3 on closed by the next exec (before Linux 5.11 one by one).
pub(super) fn close_on_exec() -> io::Result<()> {
    // SAFETY: takes integers, and closes nothing that this process still uses.
    if unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) } == 0 {
        return Ok(());
    }
    match Errno::last() {
        Errno::ENOSYS | Errno::EINVAL => {}
        error => return Err(error.into()),
    }
    for one in open_descriptors(3, u32::MAX)? {
        // SAFETY: takes integers; the directory's own descriptor is closed already, which is an error that nobody needs.
        unsafe { libc::fcntl(one.cast_signed(), libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: takes integers. Nothing in this process uses these descriptors any more: it is a fork that was started for one piece of
    // work, and what that needs is kept.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
        return Ok(());
    }
    match Errno::last() {
        Errno::ENOSYS => close_one_by_one(first, last),
        error => Err(error.into()),
    }
}

fn close_one_by_one(first: u32, last: u32) -> io::Result<()> {
    for one in open_descriptors(first, last)? {
        // SAFETY: as above; the directory's own descriptor is closed already, which is an error that nobody needs.
        unsafe { libc::close(one.cast_signed()) };
    }
    Ok(())
}

fn open_descriptors(first: u32, last: u32) -> io::Result<Vec<u32>> {
    Ok(std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|one| (first..=last).contains(one))
        .collect())
}

/// Takes away memory that others see too: rings and maps of BPF programs, buffers of events. A fork has a mapping of them where it has
/// closed their descriptors, and with it the kernel's object lives on.
pub(super) fn unmap_shared() -> io::Result<()> {
    for range in shared(&std::fs::read("/proc/self/maps")?)? {
        // SAFETY: the range is one shared mapping of this process. The work that follows uses none: what the parent shares with others
        // it does not hand to a worker.
        if unsafe { libc::munmap(range.start as *mut libc::c_void, range.len()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Where the mappings are that are shared. A line that is none is an error: what stands there could be one, and would stay.
fn shared(maps: &[u8]) -> io::Result<Vec<Range<usize>>> {
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, "/proc/self/maps has a line that is no mapping");
    let mut ranges = Vec::new();
    for line in maps.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mapping = Mapping::parse(line).ok_or_else(unknown)?;
        if mapping.is_shared() {
            let address = |address: u64| usize::try_from(address).map_err(|_| unknown());
            ranges.push(address(mapping.range.start)?..address(mapping.range.end)?);
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_mapping_is_distinguished_from_a_private_one() {
        let ring = "7f12-7f34 rw-s 00000000 00:0e 1055 anon_inode:bpf-map\n";
        let text =
            [ring, &ring.replace("rw-s", "rw-p"), "8000-9000 rw-s 00000000 00:01 7 /dev/zero (deleted)\n"].concat();
        assert_eq!(shared(text.as_bytes()).unwrap(), [0x7f12..0x7f34, 0x8000..0x9000]);
        assert!(shared(b"").unwrap().is_empty());
    }

    #[test]
    fn a_mapping_of_unknown_kind_is_not_passed_over() {
        for line in ["7f12-7f34 rw-s\n", "7f12-7f34\n", "nonsense\n"] {
            assert!(shared(line.as_bytes()).is_err(), "{line}");
        }
    }
}
