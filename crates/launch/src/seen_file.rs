//! How a file or directory is to be seen in one launch, whatever it is outside: with other permissions, another time, or
//! without some names. Data; `mounting` makes it so.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;
use serde::{Deserialize, Serialize};
use slowpath_process::FileIdentity;

use crate::os_text;

/// A file as it was looked at: what is seen of it is decided for this one and for no other that took its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookedAt {
    /// Which file.
    pub identity: FileIdentity,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its kind and its permissions (`st_mode`).
    pub mode: u32,
}

impl LookedAt {
    /// An open file, if only as a path.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        let found = fstat(&file)?;
        let identity = FileIdentity::of(&file)?;
        Ok(Self { identity, uid: found.st_uid, gid: found.st_gid, mode: found.st_mode })
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFDIR
    }

    /// Whether it is a regular file.
    pub fn is_regular(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }
}

/// What decides who may use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Permission bits. Of files set-user-id and set-group-id are never seen.
    pub mode: u32,
    /// Its access control list, as the kernel stores it (`system.posix_acl_access`).
    pub acl: Option<Vec<u8>>,
}

/// One file or directory, and how it is seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFile {
    /// Its path, absolute and without a symbolic link.
    #[serde(with = "os_text::path")]
    pub path: PathBuf,
    /// What was there when that was decided. Another file there is an error.
    pub was: LookedAt,
    /// Its permissions.
    pub permissions: Permissions,
    /// Its modification time, in seconds since 1970; `None` keeps it.
    pub modified: Option<i64>,
    /// Of a directory: names that are not in it.
    #[serde(with = "os_text::list")]
    pub without: Vec<OsString>,
    /// Of a directory: the only names that are in it, where there are any. What is not there any more, and symbolic links, are left out.
    #[serde(with = "os_text::list")]
    pub only: Vec<OsString>,
}

/// The largest file of which a launch gets a copy of its own, which takes memory.
pub const MOST_COPIED_BYTES: u64 = 512 << 20;

impl SeenFile {
    pub(crate) fn validate(&self) -> Result<(), String> {
        let is_name = |name: &OsString| {
            let bytes = name.as_bytes();
            !bytes.is_empty() && !bytes.contains(&b'/') && !bytes.contains(&0) && bytes != b"." && bytes != b".."
        };
        match () {
            () if !self.was.is_directory() && !self.was.is_regular() => {
                Err("only regular files and directories can be seen otherwise".into())
            }
            () if !(self.without.is_empty() && self.only.is_empty() || self.was.is_directory()) => {
                Err("a file has no names in it".into())
            }
            () if !self.without.is_empty() && !self.only.is_empty() => {
                Err("some names only and without some are two things".into())
            }
            () if !self.without.iter().chain(&self.only).all(is_name) => {
                Err("what is no name is in no directory".into())
            }
            () if self.path == Path::new("/") => Err("the root directory cannot be seen otherwise".into()),
            () => Ok(()),
        }
    }
}

impl fmt::Display for SeenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Permissions { uid, gid, mode, .. } = self.permissions;
        write!(f, "{} seen as {uid}:{gid} {:04o}", self.path.display(), mode & 0o7777)?;
        match self.without.len() {
            0 => Ok(()),
            names => write!(f, " without {names} names"),
        }
    }
}
