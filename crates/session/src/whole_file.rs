//! Files that are there whole or not at all: what stood at a path stays until what replaces it is complete, and nothing
//! unfinished is left, also when slowpath is killed.

use crate::failure::{Failure, Kind};
use atomic_write_file::AtomicWriteFile;
use atomic_write_file::unix::OpenOptionsExt as _;
use nix::unistd::geteuid;
use slowpath_process::trusted_directory;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

/// A file in the making.
pub enum WholeFile {
    /// It replaces what is at its path when it is complete; a link there is replaced, not followed.
    Replacing(AtomicWriteFile),
    /// A terminal, a pipe or the like cannot be replaced.
    Special(File),
}

impl WholeFile {
    /// Begins a file. A new one has this mode, less the mask of the process; another keeps its own.
    ///
    /// # Errors
    /// No file can be made there.
    pub fn begin(path: &Path, mode: u32) -> io::Result<Self> {
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return special(path).map(Self::Special);
        }
        let mut options = AtomicWriteFile::options();
        // A link's own mode lets everybody write.
        let is_link = fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink());
        options.mode(mode).preserve_mode(!is_link);
        // Work for root has root's user id without the capability to give files away (`slowpath_process::Duty`): a file of another user that
        // root replaces becomes root's.
        if geteuid().is_root() {
            options.preserve_owner(false);
        }
        options.open(path).map(Self::Replacing)
    }

    /// Whether somebody looks at it.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Special(file) if file.is_terminal())
    }

    /// Has `work` write all of it.
    ///
    /// # Errors
    /// Of `work`, or the disk is full or the like; what was there before stays then.
    pub fn write<T>(self, work: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
        match self {
            Self::Replacing(mut file) => {
                let value = buffered(&mut file, work)?;
                file.commit()?;
                Ok(value)
            }
            Self::Special(file) => buffered(file, work),
        }
    }
}

/// Opens a terminal, a pipe or the like. Root writes to none that somebody else put there, as a link to a disk or as a pipe that they read.
fn special(path: &Path) -> io::Result<File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !geteuid().is_root() || trusted_directory(parent).is_ok() {
        return File::options().write(true).open(path);
    }
    let there = File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)?;
    let metadata = there.metadata()?;
    if metadata.uid() != 0 || metadata.is_symlink() {
        let why = "it is no file, and another user can choose what it is";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    File::options().write(true).open(format!("/proc/self/fd/{}", there.as_raw_fd()))
}

/// Makes a file of this text, see [`WholeFile::begin`].
///
/// # Errors
/// It cannot be written; what was there before stays then.
pub fn replace(path: &Path, mode: u32, text: &[u8]) -> Result<(), Failure> {
    let written = WholeFile::begin(path, mode).and_then(|file| file.write(|out| out.write_all(text)));
    written.map_err(|error| unwritable(&path.to_string_lossy(), &error))
}

/// What is said of an output that cannot be written.
pub fn unwritable(name: &str, error: &io::Error) -> Failure {
    Failure::new(Kind::Usage, format!("{name} cannot be written: {error}"))
}

/// Has `work` write to `out` in large parts.
///
/// # Errors
/// Of `work`, or of `out`.
pub fn buffered<T>(out: impl Write, work: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
    let mut out = BufWriter::with_capacity(BUFFER, out);
    let value = work(&mut out)?;
    out.flush()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn names(place: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_there_stays_until_the_new_file_is_complete() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("page");
        fs::write(&path, "old").unwrap();
        let failed = WholeFile::begin(&path, 0o600).unwrap().write(|out| {
            out.write_all(b"half")?;
            out.flush()?;
            assert_eq!(names(place.path()), ["page"]);
            Err::<(), _>(io::Error::other("no"))
        });
        assert!(failed.is_err());
        assert_eq!((fs::read(&path).unwrap(), names(place.path())), (b"old".to_vec(), vec!["page".to_owned()]));
        WholeFile::begin(&path, 0o600).unwrap().write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(place.path()), ["page"]);
    }

    #[test]
    fn what_replaces_a_link_has_not_the_mode_of_the_link() {
        let place = tempfile::tempdir().unwrap();
        let [path, kept] = ["page", "kept"].map(|name| place.path().join(name));
        for there in [true, false] {
            let _ = fs::remove_file(&path);
            symlink(&kept, &path).unwrap();
            if there {
                fs::write(&kept, "kept").unwrap();
            }
            replace(&path, 0o600, b"new").unwrap();
            let metadata = fs::symlink_metadata(&path).unwrap();
            assert!(metadata.is_file());
            assert_eq!(metadata.mode() & 0o777, 0o600);
            let _ = fs::remove_file(&kept);
        }
    }

    #[test]
    fn a_new_file_has_the_mode_that_is_asked_for() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("page");
        WholeFile::begin(&path, 0o600).unwrap().write(|out| out.write_all(b"x")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_stays() {
        let place = tempfile::tempdir().unwrap();
        let (link, other) = (place.path().join("link"), place.path().join("other"));
        fs::write(&other, "old").unwrap();
        symlink(&other, &link).unwrap();
        WholeFile::begin(&link, 0o600).unwrap().write(|out| out.write_all(b"new")).unwrap();
        assert_eq!((fs::read(&other).unwrap(), fs::read(&link).unwrap()), (b"old".to_vec(), b"new".to_vec()));
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
    }

    #[test]
    fn root_writes_to_no_device_or_pipe_that_another_user_put_there() {
        if !geteuid().is_root() {
            println!("skipped: only root can give a directory away");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        symlink("/dev/full", path("link")).unwrap();
        for name in ["theirs", "roots"] {
            nix::unistd::mkfifo(&path(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        let nobody = Some(65534);
        std::os::unix::fs::chown(path("theirs"), nobody, nobody).unwrap();
        std::os::unix::fs::chown(place.path(), nobody, nobody).unwrap();
        for name in ["link", "theirs"] {
            let refused = WholeFile::begin(&path(name), 0o600).err().expect("it is refused");
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{name}: {refused}");
        }
        let reader = std::thread::spawn({
            let fifo = path("roots");
            move || fs::read(fifo).unwrap()
        });
        WholeFile::begin(&path("roots"), 0o600).unwrap().write(|out| out.write_all(b"x")).unwrap();
        assert_eq!(reader.join().unwrap(), b"x");
    }

    #[test]
    fn what_is_no_file_is_written_to() {
        WholeFile::begin(Path::new("/dev/null"), 0o600).unwrap().write(|out| out.write_all(b"x")).unwrap();
        let full = WholeFile::begin(Path::new("/dev/full"), 0o600).unwrap().write(|out| out.write_all(b"x"));
        assert_eq!(full.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    }
}
