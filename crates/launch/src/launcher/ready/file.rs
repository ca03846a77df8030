//! `file:PATH` through inotify on the deepest directory of the path that exists.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

/// What distinguishes one state of a name from another: device, inode, time of its last change.
type State = (u64, u64, i64, i64);

pub(crate) struct FileWatch {
    path: PathBuf,
    before: Option<State>,
    inotify: Inotify,
    watched: Option<(WatchDescriptor, (u64, u64))>,
}

impl FileWatch {
    pub(super) fn start(path: &Path) -> io::Result<FileWatch> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let mut watch = FileWatch { path: path.to_owned(), before: state(path), inotify, watched: None };
        watch.rearm()?;
        Ok(watch)
    }

    pub(super) fn descriptor(&self) -> (BorrowedFd<'_>, PollFlags) {
        (self.inotify.as_fd(), PollFlags::POLLIN)
    }

    pub(super) fn look(&mut self) -> io::Result<bool> {
        loop {
            match self.inotify.read_events() {
                Ok(_) => {}
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.rearm()?;
        let now = state(&self.path);
        Ok(now.is_some() && now != self.before)
    }

    /// Watches the deepest existing directory. Returns only when the watch was set *before* the look that found no
    /// deeper one; what is created later raises an event.
    fn rearm(&mut self) -> io::Result<()> {
        let flags = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_ATTRIB
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        loop {
            let deepest = self.path.ancestors().skip(1).find_map(|dir| {
                let metadata = std::fs::metadata(dir).ok().filter(std::fs::Metadata::is_dir)?;
                Some((dir, (metadata.dev(), metadata.ino())))
            });
            let Some((dir, id)) = deepest else { return Err(io::ErrorKind::NotFound.into()) };
            if self.watched.as_ref().is_some_and(|(_, watched)| *watched == id) {
                return Ok(());
            }
            match self.inotify.add_watch(dir, flags) {
                Ok(descriptor) => {
                    if let Some((old, _)) = self.watched.replace((descriptor, id))
                        && old != descriptor
                    {
                        let _ = self.inotify.rm_watch(old);
                    }
                }
                // Gone again: look for the next one above.
                Err(Errno::ENOENT | Errno::ENOTDIR) => self.watched = None,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Of the name itself: a dangling link (such as lock files are) exists.
fn state(path: &Path) -> Option<State> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn directories_and_the_file_may_appear_one_after_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/file");
        let mut watch = FileWatch::start(&path).unwrap();
        assert!(!watch.look().unwrap());
        fs::create_dir(dir.path().join("a")).unwrap();
        assert!(!watch.look().unwrap());
        fs::create_dir(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/other"), "x").unwrap();
        assert!(!watch.look().unwrap());
        fs::write(&path, "x").unwrap();
        assert!(watch.look().unwrap());
    }

    #[test]
    fn a_file_left_by_an_earlier_launch_counts_only_when_it_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        fs::write(&path, "1").unwrap();
        let mut watch = FileWatch::start(&path).unwrap();
        assert!(!watch.look().unwrap());
        // Time stamps of a file system advance with the timer tick, up to 10 ms.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(&path, "2").unwrap();
        assert!(watch.look().unwrap());
    }
}
