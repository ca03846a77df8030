//! Files that the user names and others may have made: plans, budgets, contexts, filters, diagnoses.
//!
//! Owns opening and reading them: a pipe is not waited for, a device is not read, and no file is read beyond what its kind can have.
//! Leaves identity to the caller, and what bytes mean to the libraries.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file. Links are followed: the user named the path, and it is opened as the user.
///
/// # Errors
/// It cannot be opened, or is something else.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "is not a regular file"));
    }
    Ok(file)
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open`], or it is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let text = format!("is larger than {} MiB, too large for its kind", most >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_directories_and_large_files_are_refused_without_waiting() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [&pipe, Path::new("/dev/zero"), place.path()] {
            assert_eq!(read(path, 9).unwrap_err().kind(), ErrorKind::InvalidInput, "{}", path.display());
        }
        let file = place.path().join("file");
        std::fs::write(&file, "0123456789").unwrap();
        assert_eq!(read(&file, 10).unwrap(), b"0123456789");
        assert_eq!(read(&file, 9).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read(&place.path().join("none"), 9).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
