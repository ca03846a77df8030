//! The state directory: a lock that one process has at a time, and the record of what was tried.

use crate::tries::Tries;
use slowpath_process::{StateDirectory, StateError};
use std::error::Error;
use std::fs::File;
use std::path::Path;

/// The record of one policy, locked.
pub struct Store {
    directory: StateDirectory,
    file: String,
    _lock: File,
}

/// What became of asking for the lock.
pub enum Opened {
    /// It is this process's until the store is dropped.
    Ours(Store, Tries),
    /// Another process repairs at this moment.
    Busy,
}

impl Store {
    /// Opens the directory, which is made where only it is missing, takes the lock without waiting, and reads the record.
    ///
    /// # Errors
    /// Why what was tried cannot be known: others could have written it, or it is damaged.
    pub fn open(path: &Path, policy: &str) -> Result<Opened, String> {
        let directory = StateDirectory::at(path).map_err(|error| words(&error))?;
        let failed = |what: &str| {
            let shown = path.display().to_string();
            let what = what.to_owned();
            move |error: std::io::Error| format!("{what} in {shown} cannot be used: {error}")
        };
        let lock = directory.try_lock(&format!("{policy}.lock")).map_err(failed("the lock"))?;
        let Some(lock) = lock else { return Ok(Opened::Busy) };
        let file = format!("{policy}.json");
        let tries = match directory.read_file(&file).map_err(failed("the record"))? {
            None => Tries::default(),
            Some(bytes) => {
                Tries::parse(&bytes).map_err(|why| format!("{} is damaged: {why}", path.join(&file).display()))?
            }
        };
        Ok(Opened::Ours(Self { directory, file, _lock: lock }, tries))
    }

    /// Writes the record, so that it is there after a crash too.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, tries: &Tries) -> Result<(), String> {
        let written = self.directory.replace_file(&self.file, &tries.text());
        written
            .map_err(|error| format!("what is tried cannot be noted in {}: {error}", self.directory.path().display()))
    }
}

/// An error with its cause, in one line.
fn words(error: &StateError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn refused(path: &Path) -> String {
        Store::open(path, "p").err().expect("it is taken")
    }

    #[test]
    fn one_process_at_a_time_has_the_record_and_what_it_wrote_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state");
        let Ok(Opened::Ours(store, mut tries)) = Store::open(&path, "p") else { panic!("not opened") };
        assert!(matches!(Store::open(&path, "p"), Ok(Opened::Busy)));
        assert!(matches!(Store::open(&path, "other"), Ok(Opened::Ours(..))));
        tries.begin("1", "a", String::new());
        store.write(&tries).unwrap();
        drop(store);
        let Ok(Opened::Ours(_, read)) = Store::open(&path, "p") else { panic!("not opened again") };
        assert_eq!(read, tries);
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&path), mode(&path.join("p.json")), mode(&path.join("p.lock"))), (0o700, 0o600, 0o600));
    }

    #[test]
    fn a_directory_that_others_can_reach_a_link_and_a_damaged_record_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("open")).unwrap();
        fs::set_permissions(at("open"), Permissions::from_mode(0o755)).unwrap();
        assert!(refused(&at("open")).contains("belongs to this user alone"));
        fs::create_dir(at("real")).unwrap();
        fs::set_permissions(at("real"), Permissions::from_mode(0o700)).unwrap();
        symlink("real", at("link")).unwrap();
        assert!(refused(&at("link")).contains("belongs to this user alone"));
        fs::write(at("real/p.json"), "{").unwrap();
        assert!(refused(&at("real")).contains("p.json is damaged"));
        assert!(refused(&at("none/state")).contains("cannot be used"));
    }
}
