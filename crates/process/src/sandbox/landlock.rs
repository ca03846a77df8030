//! Where a worker may write: nowhere but beneath the directories that it is given (Landlock, Documentation/userspace-api/landlock.rst).
//!
//! Linux 5.13 has it, and only where it is configured. Elsewhere the worker's user and the filter are what holds.

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// `LANDLOCK_CREATE_RULESET_VERSION`, include/uapi/linux/landlock.h.
const VERSION: u32 = 1;
/// `LANDLOCK_RULE_PATH_BENEATH`.
const PATH_BENEATH: u32 = 1;

/// Rights of `LANDLOCK_ACCESS_FS_*` by their bit, that change something or execute it.
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
/// Moving between directories: always refused by version 1.
const REFER: u64 = 1 << 13;
/// Version 3.
const TRUNCATE: u64 = 1 << 14;

/// All that is refused without a rule.
const HANDLED: u64 = EXECUTE
    | WRITE_FILE
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_CHAR
    | MAKE_DIR
    | MAKE_REG
    | MAKE_SOCK
    | MAKE_FIFO
    | MAKE_BLOCK
    | MAKE_SYM;

/// What may be done to files.
const OF_FILES: u64 = WRITE_FILE | TRUNCATE;
/// What may be done in directories besides: regular files and directories, nothing else.
const OF_DIRECTORIES: u64 = REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER;

/// Where something may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WritablePlace {
    /// Everything beneath this directory.
    Beneath(PathBuf),
    /// This file. One that is replaced as a whole needs its directory; a terminal, a pipe or a device is written to where it is.
    File(PathBuf),
}

impl WritablePlace {
    /// What a rule is made for; to be called as the user whose place it is.
    fn granted(&self) -> &Path {
        match self {
            Self::Beneath(directory) => directory,
            Self::File(file) if std::fs::metadata(file).is_ok_and(|there| !there.is_file()) => file,
            Self::File(file) => match file.parent() {
                Some(directory) if !directory.as_os_str().is_empty() => directory,
                _ => Path::new("."),
            },
        }
    }
}

/// `struct landlock_ruleset_attr` of version 1.
#[repr(C)]
struct Ruleset {
    handled: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    parent: i32,
}

/// From now on this thread, and what it starts, changes files in `places` only and executes none. A place that is not there is left
/// out: what is to be written there is refused. False where the kernel has no Landlock.
pub(super) fn write_only_in(places: &[WritablePlace]) -> io::Result<bool> {
    // SAFETY: asks for a number.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, VERSION) };
    if version < 1 {
        return Ok(false);
    }
    let of_version = HANDLED | if version >= 2 { REFER } else { 0 } | if version >= 3 { TRUNCATE } else { 0 };
    let attributes = Ruleset { handled: of_version };
    // SAFETY: the kernel reads a structure of this size.
    let made = checked(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size_of::<Ruleset>(), 0)
    })?;
    let made = i32::try_from(made).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made it for this process.
    let ruleset = unsafe { OwnedFd::from_raw_fd(made) };
    for place in places {
        // Neither a pipe nor a device is opened by this, nor asked anything.
        let Ok(parent) = open(place.granted(), OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()) else { continue };
        let allowed = if is_directory(&fstat(&parent)?) { OF_FILES | OF_DIRECTORIES } else { OF_FILES };
        let rule = Beneath { allowed: allowed & of_version, parent: parent.as_raw_fd() };
        // SAFETY: the kernel reads a structure of its own form; the descriptor in it is open.
        checked(unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), PATH_BENEATH, &raw const rule, 0)
        })?;
    }
    // SAFETY: takes integers.
    checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) })?;
    Ok(true)
}

fn is_directory(file: &FileStat) -> bool {
    SFlag::from_bits_truncate(file.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR
}

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(Errno::last().into()) } else { Ok(result) }
}
