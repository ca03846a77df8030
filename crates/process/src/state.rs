//! The directory in which slowpath keeps what outlives a command: of root's commands `/run/slowpath`, of others a directory
//! that belongs to their user. Nobody else can write there, so that what a name or a file there says can be relied on.
//!
//! Every entry carries its owner's pid and start time in its name, and is locked (flock) while its owner lives.

use crate::owner::Owner;
use crate::trusted_path::{PLAIN, again, create_beneath, open_beneath, rustix_euid, trusted_directory};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, FlockOperation, Mode, OFlags, ResolveFlags, flock, fstat, fsync, mkdirat, openat2, renameat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where root's commands keep it (FHS 3.0, 3.15: run-time variable data).
const OF_ROOT: &str = "/run/slowpath";
/// No entry says more than this.
const MOST_BYTES: u64 = 64 << 10;

/// Why there is no such directory.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Something else stands at its name.
    #[error("{} is not a directory that belongs to this user alone: remove it", .0.display())]
    NotOurs(PathBuf),
    /// It cannot be made or opened.
    #[error("{} cannot be used", path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The open directory.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    path: PathBuf,
    directory: Arc<OwnedFd>,
}

impl StateDirectory {
    /// That of the calling user; made when it is not there.
    ///
    /// # Errors
    /// It cannot be made, or what is there could have been written by somebody else.
    pub fn of_this_user() -> Result<Self, StateError> {
        Self::first_of(&Self::places(), Self::at)
    }

    /// That of the calling user, if there is one: for commands that only look.
    ///
    /// # Errors
    /// There is none, or what is there could have been written by somebody else.
    pub fn existing() -> Result<Self, StateError> {
        Self::first_of(&Self::places(), |path| Self::open(path, false))
    }

    fn places() -> Vec<PathBuf> {
        let uid = rustix_euid();
        if uid == 0 {
            // No variable of the caller's decides what root takes for its own.
            return vec![OF_ROOT.into()];
        }
        let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        // Not set, or another user's, as sudo and su can leave it: the other one.
        given
            .map(|runtime| runtime.join("slowpath"))
            .into_iter()
            .chain([format!("/tmp/slowpath-{uid}").into()])
            .collect()
    }

    fn first_of(places: &[PathBuf], open: impl Fn(&Path) -> Result<Self, StateError>) -> Result<Self, StateError> {
        let mut last = Err(StateError::NotOurs(PathBuf::new()));
        for place in places {
            last = open(place);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// The directory at `path`, whose parent must be one that others cannot change.
    ///
    /// # Errors
    /// As [`StateDirectory::of_this_user`].
    pub fn at(path: &Path) -> Result<Self, StateError> {
        Self::open(path, true)
    }

    fn open(path: &Path, make: bool) -> Result<Self, StateError> {
        let unusable = |source: io::Error| StateError::Unusable { path: path.to_owned(), source };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(unusable(io::ErrorKind::InvalidInput.into()));
        };
        let parent = trusted_directory(parent).map_err(unusable)?;
        match if make { mkdirat(&parent, name, Mode::RWXU) } else { Ok(()) } {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(unusable(errno.into())),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = PLAIN | ResolveFlags::BENEATH;
        let directory = match again(|| openat2(&parent, name, flags, Mode::empty(), resolve)) {
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(StateError::NotOurs(path.to_owned())),
            opened => opened.map_err(|errno| unusable(errno.into()))?,
        };
        let found = fstat(&directory).map_err(|errno| unusable(errno.into()))?;
        if found.st_uid != rustix_euid() || found.st_mode & 0o077 != 0 {
            return Err(StateError::NotOurs(path.to_owned()));
        }
        Ok(Self { path: path.to_owned(), directory: Arc::new(directory) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file of a kind, owned by this process. It stays until [`Entry::remove`].
    ///
    /// # Errors
    /// It cannot be made or written.
    pub fn new_file(&self, kind: &str, content: &[u8]) -> io::Result<Entry> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let entry = self.new_entry(kind, |name| create_beneath(&self.directory, name, flags, 0o600))?;
        entry.write(content).inspect_err(|_| {
            let _ = entry.remove();
        })?;
        Ok(entry)
    }

    /// Makes a directory of a kind, owned by this process. It stays until somebody empties it and calls
    /// [`Entry::remove`].
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new_directory(&self, kind: &str) -> io::Result<Entry> {
        self.new_entry(kind, |name| {
            mkdirat(&self.directory, name, Mode::RWXU)?;
            open_beneath(&self.directory, name, OFlags::RDONLY | OFlags::DIRECTORY)
        })
    }

    fn new_entry(&self, kind: &str, make: impl Fn(&OsStr) -> io::Result<OwnedFd>) -> io::Result<Entry> {
        let owner = Owner::this_process()?;
        loop {
            let name = OsString::from(owner.fresh_name(kind));
            match make(&name) {
                // Left by a killed process of the same pid and tick.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    let file = File::from(made?);
                    // Waits: whoever lists entries at this moment tries the lock for an instant.
                    flock(&file, FlockOperation::LockExclusive)?;
                    return Ok(Entry { state: self.clone(), name, file });
                }
            }
        }
    }

    /// Serialises what several commands must not do at once, until the value is dropped.
    ///
    /// # Errors
    /// The lock cannot be made.
    pub fn lock(&self, name: &str) -> io::Result<File> {
        let file = create_beneath(&self.directory, name, OFlags::RDWR | OFlags::CREATE, 0o600)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(File::from(file))
    }

    /// The same without waiting: `None` where another process has it.
    ///
    /// # Errors
    /// The lock cannot be made.
    pub fn try_lock(&self, name: &str) -> io::Result<Option<File>> {
        let file = create_beneath(&self.directory, name, OFlags::RDWR | OFlags::CREATE, 0o600)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(File::from(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The content of a small file that [`StateDirectory::replace_file`] wrote; `None` where there is none.
    ///
    /// # Errors
    /// It is no regular file, too large, or cannot be read.
    pub fn read_file(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match open_beneath(&self.directory, name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW) {
            Ok(file) => read_small(file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file as a whole: whoever is killed meanwhile leaves the old content or the new one, on the disk too. For who has a lock.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn replace_file(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let unfinished = format!(".{name}.new");
        match unlinkat(&self.directory, &unfinished, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = File::from(create_beneath(&self.directory, &unfinished, flags, 0o600)?);
        file.write_all(content)?;
        file.sync_all()?;
        renameat(&self.directory, &unfinished, &self.directory, name)?;
        fsync(&self.directory)?;
        Ok(())
    }

    /// The entries of a kind, sorted by name.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn entries(&self, kind: &str) -> io::Result<Vec<ListedEntry>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if let Some(owner) = Owner::parse(name, kind) {
                found.push(ListedEntry { state: self.clone(), name: name.into(), owner });
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }
}

impl AsFd for StateDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// An entry of this process, locked until it is dropped. Dropping it removes nothing.
#[derive(Debug)]
pub struct Entry {
    state: StateDirectory,
    name: OsString,
    file: File,
}

impl Entry {
    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.state.path.join(&self.name)
    }

    /// Replaces the content of a file. Short ones are replaced at once, whenever this process is killed.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, content: &[u8]) -> io::Result<()> {
        self.file.write_all_at(content, 0)?;
        self.file.set_len(content.len() as u64)
    }

    /// Removes a file, or a directory that is empty.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove(&self) -> io::Result<()> {
        remove(&self.state, &self.name)
    }
}

impl AsFd for Entry {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// An entry of any process, living or dead.
#[derive(Clone, Debug)]
pub struct ListedEntry {
    state: StateDirectory,
    name: OsString,
    /// Who made it.
    pub owner: Owner,
}

impl ListedEntry {
    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.state.path.join(&self.name)
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// It is gone, or a link.
    pub fn open(&self) -> io::Result<OwnedFd> {
        open_beneath(&self.state, &self.name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW)
    }

    /// Whether its owner lives: by its lock, in whatever pid namespace the owner is, or, while that is being taken, by its
    /// name.
    pub fn is_alive(&self) -> bool {
        let is_locked = self
            .open()
            .is_ok_and(|open| flock(&open, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK));
        is_locked || self.owner.is_alive()
    }

    /// The content of a file.
    ///
    /// # Errors
    /// It is gone, no file, or larger than any entry is.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        read_small(self.open()?)
    }

    /// Removes a file, or a directory that is empty; one that is gone is no error.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove(&self) -> io::Result<()> {
        remove(&self.state, &self.name)
    }
}

/// Reads a regular file, if it is a small one.
pub(crate) fn read_small(file: OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::from(file);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file"));
    }
    let mut content = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MOST_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is larger than anything that slowpath writes there",
        ));
    }
    Ok(content)
}

fn remove(state: &StateDirectory, name: &OsStr) -> io::Result<()> {
    let removed = match unlinkat(state, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => unlinkat(state, name, AtFlags::REMOVEDIR),
        removed => removed,
    };
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state");
        (place, path)
    }

    #[test]
    fn it_is_made_for_its_user_alone_and_taken_again() {
        let (_place, path) = place();
        assert!(StateDirectory::open(&path, false).is_err() && !path.exists());
        StateDirectory::at(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o700);
        StateDirectory::at(&path).unwrap();
    }

    #[test]
    fn what_another_user_could_have_put_there_is_refused() {
        let (place, path) = place();
        let refused = || matches!(StateDirectory::at(&path), Err(StateError::NotOurs(_)));
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert!(refused(), "a link");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "x").unwrap();
        assert!(refused(), "a file");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(refused(), "open to a group");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        StateDirectory::at(&path).unwrap();
        if nix::unistd::geteuid().is_root() {
            chown(&path, Some(crate::NOBODY), None).unwrap();
            assert!(refused(), "another user's");
        }
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(StateDirectory::at(&path), Err(StateError::Unusable { .. })), "a parent open to all");
    }

    #[test]
    fn an_entry_lives_with_its_lock_or_its_owner_and_says_what_was_written_last() {
        let (_place, path) = place();
        let state = StateDirectory::at(&path).unwrap();
        let entry = state.new_file("note", b"a longer text").unwrap();
        entry.write(b"short").unwrap();
        let found = state.entries("note").unwrap().pop().unwrap();
        assert_eq!((found.read().unwrap().as_slice(), found.is_alive()), (&b"short"[..], true));
        assert!(state.entries("other").unwrap().is_empty());
        // Of a process that is gone, as its name says, but for the lock.
        let me = Owner::this_process().unwrap();
        let dead = path.join(Owner { start: me.start + 1, ..me }.fresh_name("note"));
        fs::rename(entry.path(), &dead).unwrap();
        let found = state.entries("note").unwrap().pop().unwrap();
        assert!(found.is_alive());
        drop(entry);
        assert!(!found.is_alive());
        found.remove().unwrap();
        found.remove().unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_small_file_is_not_read() {
        let (_place, path) = place();
        let state = StateDirectory::at(&path).unwrap();
        let name = |number: u32| path.join(format!("note-1-2-{number}"));
        nix::unistd::mkfifo(&name(1), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("/dev/zero", name(2)).unwrap();
        fs::File::create(name(3)).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let found = state.entries("note").unwrap();
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|found| found.read().is_err()));
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_lock_that_another_has_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(&place.path().join("state")).unwrap();
        assert_eq!(state.read_file("record").unwrap(), None);
        for content in ["first", "2"] {
            state.replace_file("record", content.as_bytes()).unwrap();
            assert_eq!(state.read_file("record").unwrap().unwrap(), content.as_bytes());
        }
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 1);
        let lock = state.try_lock("lock").unwrap();
        assert!(lock.is_some() && state.try_lock("lock").unwrap().is_none());
        drop(lock);
        assert!(state.try_lock("lock").unwrap().is_some());
        std::os::unix::fs::symlink("record", state.path().join("link")).unwrap();
        assert!(state.read_file("link").is_err() && state.try_lock("link").is_err());
    }
}
