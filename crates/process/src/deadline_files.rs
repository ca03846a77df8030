//! Files under `/proc` that show or open what a process has in memory, read by a child that may hang ([`Deadline`]).

use crate::deadline::{Deadline, DeadlineAnswer, DeadlineError, LIMIT};
use crate::user_file_system::{copied, is_answered_by_a_program};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Reads and opens files of processes, with a deadline.
pub struct ProcessFiles(Deadline<Work>);

/// What the child does with a request.
type Work = fn(&[u8]) -> io::Result<DeadlineAnswer>;

/// A regular file that a process has, and what it was when it was opened. Only its bytes are unknown: the descriptor itself can hang
/// whoever asks it for anything, so a process with privilege hands it on and asks nothing.
#[derive(Debug)]
pub struct Opened {
    /// For reading. Of a file that a program answers for (FUSE) it is a copy in memory: even to close that one could take for ever.
    pub file: OwnedFd,
    /// Device as the kernel encodes it (`major << 20 | minor`).
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Bytes.
    pub size: u64,
    /// Whose it is.
    pub uid: u32,
    /// Permission bits.
    pub mode: u32,
}

const READ: u8 = 0;
const OPEN: u8 = 1;

impl Default for ProcessFiles {
    fn default() -> Self {
        Self(Deadline::new(LIMIT, answer))
    }
}

impl ProcessFiles {
    /// Starts the child now, before there are threads or locks that it could find taken.
    ///
    /// # Errors
    /// No process could be started.
    pub fn start(&mut self) -> Result<(), DeadlineError> {
        self.0.start()
    }

    /// Reads that hung.
    pub fn hangs(&self) -> u32 {
        self.0.hangs()
    }

    /// The first `most` bytes of a file.
    ///
    /// # Errors
    /// It cannot be read, or not in time.
    pub fn read(&mut self, path: &Path, most: u64) -> Result<Vec<u8>, DeadlineError> {
        self.0.ask(&request(READ, most, path)).map(|(bytes, _)| bytes)
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// It cannot be opened, is none, or not in time.
    pub fn open(&mut self, path: &Path) -> Result<Opened, DeadlineError> {
        let (bytes, file) = self.0.ask(&request(OPEN, 0, path))?;
        let words = bytes.as_chunks::<8>().0;
        let word = |at: usize| words.get(at).copied().map(u64::from_ne_bytes).unwrap_or_default();
        let narrow = |at: usize| u32::try_from(word(at)).unwrap_or(u32::MAX);
        let file = file.ok_or_else(|| DeadlineError::Failed(io::ErrorKind::NotFound.into()))?;
        Ok(Opened { file, dev: word(0), ino: word(1), size: word(2), uid: narrow(3), mode: narrow(4) })
    }
}

fn request(what: u8, most: u64, path: &Path) -> Vec<u8> {
    [&[what][..], &most.to_ne_bytes(), path.as_os_str().as_bytes()].concat()
}

/// In the child.
fn answer(request: &[u8]) -> io::Result<DeadlineAnswer> {
    let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
    let (what, rest) = request.split_first().ok_or_else(invalid)?;
    let (most, path) = rest.split_first_chunk::<8>().ok_or_else(invalid)?;
    let path = Path::new(OsStr::from_bytes(path));
    // What it is is known before it is opened: to open a device does something.
    let found = File::options().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path)?;
    let metadata = found.metadata()?;
    if !metadata.is_file() {
        return Err(invalid());
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    let again = format!("/proc/self/fd/{}", found.as_raw_fd());
    let file = File::options().read(true).custom_flags(flags).open(again)?;
    if *what == READ {
        let mut bytes = Vec::new();
        file.take(u64::from_ne_bytes(*most)).read_to_end(&mut bytes)?;
        return Ok((bytes, None));
    }
    let dev = u64::from(libc::major(metadata.dev())) << 20 | u64::from(libc::minor(metadata.dev()));
    let file = if is_answered_by_a_program(&file)? { copied(&file)? } else { file };
    let words = [dev, metadata.ino(), metadata.size(), metadata.uid().into(), (metadata.mode() & 0o7777).into()];
    Ok((words.iter().flat_map(|word| word.to_ne_bytes()).collect(), Some(file.into())))
}
