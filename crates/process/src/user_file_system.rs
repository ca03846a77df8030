//! Files whose file system is a program's (FUSE): whoever closes one asks that program (FUSE_FLUSH), and the wait for its answer ends by
//! no signal (fs/fuse/dev.c, `request_wait_answer` with `FR_FORCE`). A process with privilege must never hold such a descriptor.
//!
//! Owns telling them, and a copy in memory that can be closed. Only a child that may be left behind opens them.

use nix::sys::statfs::{FsType, fstatfs};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;

/// `FUSE_SUPER_MAGIC`, fs/fuse/inode.c; virtiofs has it, too.
const FUSE: FsType = FsType(0x6573_5546);

/// The largest file that is copied: it is read through its program, and a deadline ends that earlier.
const LARGEST_COPY: u64 = 256 << 20;

/// Whether a program answers for this file. The descriptor may be one of `O_PATH`, which is closed without a question.
///
/// # Errors
/// The file system says nothing of itself.
pub fn is_answered_by_a_program(file: &impl AsFd) -> io::Result<bool> {
    Ok(fstatfs(file)?.filesystem_type() == FUSE)
}

/// What the file holds, in memory that can no more be changed, to be read from its beginning.
///
/// # Errors
/// It cannot be read, or is larger than 256 MiB.
pub(crate) fn copied(file: &File) -> io::Result<File> {
    let mut copy = File::from(memfd_create("slowpath-copy", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    if io::copy(&mut file.take(LARGEST_COPY + 1), &mut copy)? > LARGEST_COPY {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    fcntl_add_seals(&copy, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    copy.rewind()?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_copy_holds_the_same_and_cannot_be_changed() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"some bytes").unwrap();
        file.rewind().unwrap();
        assert!(!is_answered_by_a_program(&file).unwrap());
        let mut copy = copied(&file).unwrap();
        let mut text = String::new();
        copy.read_to_string(&mut text).unwrap();
        assert_eq!(text, "some bytes");
        assert!(copy.write_all(b"x").is_err() && copy.set_len(0).is_err());
    }
}
