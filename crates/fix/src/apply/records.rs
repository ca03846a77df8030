//! Where the records of applied fixes are: one file each, in a directory of the user who applied them.
//!
//! Not in the directory of the diagnosis: a record says what is written where when a fix is taken back, so it must be one that only
//! the user could have written. Root's are in `/var/lib/slowpath/fixes`, others' in `$XDG_STATE_HOME` or `~/.local/state`.

use super::error::ApplyError;
use super::journal::{FileContent, Journal, SCHEMA};
use super::place::{self, FilePlace, There};
use crate::Word;
use nix::unistd::{Uid, User, geteuid};
use rustix::fs::{AtFlags, unlinkat};
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where root keeps what it needs after a restart. No variable of the caller's decides it.
const OF_ROOT: &str = "/var/lib/slowpath/fixes";
/// How long another slowpath that applies or undoes is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A record with its name.
#[derive(Clone, Debug)]
pub struct Record {
    /// Name of its file.
    pub name: String,
    /// What it says.
    pub journal: Journal,
}

/// The records of this user.
pub struct Records {
    path: PathBuf,
    /// Held against other slowpaths where something is changed.
    _lock: Option<File>,
}

/// A directory of this user's alone, made where there is none, and held against other slowpaths.
pub(super) fn locked(path: &Path) -> Result<File, ApplyError> {
    for part in place::missing(path)? {
        place::make_directory(&part, 0o700)?;
    }
    let directory: OwnedFd = place::directory(path).map_err(|error| ApplyError::unusable(path, error))?;
    let lock = File::from(directory);
    let began = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::Error(error)) => return Err(ApplyError::unusable(path, error)),
            Err(TryLockError::WouldBlock) if began.elapsed() > PATIENCE => return Err(ApplyError::Busy),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn of_this_user() -> Result<PathBuf, ApplyError> {
    if geteuid().is_root() {
        return Ok(OF_ROOT.into());
    }
    let given = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = match given {
        Some(base) => base,
        None => home()?.join(".local/state"),
    };
    Ok(base.join("slowpath/fixes"))
}

/// Removes records of which the writing was not finished: nothing was changed by them.
fn remove_unfinished(path: &Path, directory: &File) {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.file_name());
    for name in entries.filter(|name| is_unfinished(&name.to_string_lossy())) {
        let _ = unlinkat(directory, name, AtFlags::empty());
    }
}

fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".new")
}

/// The home directory of the user.
pub fn home() -> Result<PathBuf, ApplyError> {
    let given = std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let of_user = || User::from_uid(Uid::effective()).ok().flatten().map(|user| user.dir);
    given.or_else(of_user).ok_or(ApplyError::NoHome)
}

impl Records {
    /// To look at them.
    pub fn to_read() -> Result<Self, ApplyError> {
        Ok(Self { path: of_this_user()?, _lock: None })
    }

    /// To change them: nobody else does meanwhile.
    pub fn to_change() -> Result<Self, ApplyError> {
        let path = of_this_user()?;
        let lock = locked(&path)?;
        remove_unfinished(&path, &lock);
        Ok(Self { path, _lock: Some(lock) })
    }

    /// Those of a diagnosis, the last first.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn of(&self, directory: &Path) -> Result<Vec<Record>, ApplyError> {
        let wanted = Word::from(directory.as_os_str());
        let mut records = self.all()?;
        records.retain(|record| record.journal.directory == wanted);
        Ok(records)
    }

    fn all(&self) -> Result<Vec<Record>, ApplyError> {
        let wrong = |error: io::Error| ApplyError::unusable(&self.path, error);
        match place::directory(&self.path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(wrong(error)),
        }
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(wrong)? {
            let name = entry.map_err(wrong)?.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && name.ends_with(".json") {
                names.push(name);
            }
        }
        names.sort();
        names.into_iter().rev().map(|name| self.read(name)).collect()
    }

    fn read(&self, name: String) -> Result<Record, ApplyError> {
        let path = self.path.join(&name);
        let damaged = |why: String| ApplyError::Damaged { path: path.clone(), why };
        let there =
            FilePlace::open(&path).and_then(|place| place.look()).map_err(|error| damaged(error.to_string()))?;
        let there = there.file().ok_or_else(|| damaged("it is no file of this user".to_owned()))?;
        let journal: Journal =
            serde_json::from_slice(there.content.as_bytes()).map_err(|error| damaged(error.to_string()))?;
        if journal.schema != SCHEMA {
            return Err(damaged(format!("its format is {:?}, this slowpath reads {SCHEMA:?}", journal.schema)));
        }
        Ok(Record { name, journal })
    }

    /// Writes a new record, with the time as RFC 3339 in its name. It is on disk when this returns.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(&self, journal: Journal, now: &str) -> Result<Record, ApplyError> {
        let now = now.replace(':', "");
        let last = self.all()?.into_iter().map(|record| record.name).max().unwrap_or_default();
        // Names are ordered as fixes were applied, also within a second and after the clock was set back.
        let number = last.split('-').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) + 1;
        let record = Record { name: format!("{number:08}-{now}.json"), journal };
        self.write(&record)?;
        Ok(record)
    }

    /// Writes a record anew.
    pub fn write(&self, record: &Record) -> Result<(), ApplyError> {
        let place = self.place(&record.name)?;
        let content = serde_json::to_vec(&record.journal).unwrap_or_default();
        let wanted = FileContent {
            content: content.into(),
            mode: 0o600,
            uid: geteuid().as_raw(),
            gid: nix::unistd::getegid().as_raw(),
            modified: None,
        };
        let there = place.look().map_err(|error| ApplyError::unusable(&self.path, error))?;
        place.replace(&format!(".{}.new", record.name), &wanted, there.file())
    }

    /// Forgets one.
    pub fn remove(&self, record: &Record) -> Result<(), ApplyError> {
        let place = self.place(&record.name)?;
        match place.look().map_err(|error| ApplyError::unusable(&self.path, error))? {
            There::File(file) => place.remove(&file),
            _ => Ok(()),
        }
    }

    fn place(&self, name: &str) -> Result<FilePlace, ApplyError> {
        FilePlace::open(&self.path.join(name)).map_err(|error| ApplyError::unusable(&self.path, error))
    }
}
