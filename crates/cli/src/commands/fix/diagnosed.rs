//! The diagnosis of a directory, read without trust: by a worker, as the user to whom the directory belongs.

use crate::commands::invoker;
use crate::commands::report::DIAGNOSIS_FILE;
use crate::failure::{Failure, Kind, failed};
use crate::unprivileged::{Work, as_user};
use nix::unistd::geteuid;
use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};
use slowpath_fix::preload_plan::file as plan_file;
use slowpath_fix::{FixPlan, Word};
use slowpath_launch::Identity;
use slowpath_report::{Diagnosis, MOST_DIAGNOSIS_BYTES, Verdict};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Write permission for group and others, inode(7).
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Longest preload plan, as its reader has it.
const MOST_PLAN_BYTES: u64 = 64 << 20;

/// A directory as it was found.
#[derive(Debug, Serialize, Deserialize)]
struct Directory {
    path: Word,
    uid: u32,
    mode: u32,
}

/// What a diagnosis says of its fixes.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    command: Vec<Word>,
    fixes: Vec<FixPlan>,
    verdicts: Vec<Verdict>,
}

/// A diagnosis, and who wrote it.
pub struct Diagnosed {
    /// Its directory, absolute and without links.
    pub directory: PathBuf,
    /// The command.
    pub command: Vec<Word>,
    /// The fixes.
    pub fixes: Vec<FixPlan>,
    /// The verdicts.
    pub verdicts: Vec<Verdict>,
    owner: Identity,
    is_ours: bool,
}

/// The absolute path of a directory, links resolved as the invoker; as it was given where there is none.
pub fn resolved(directory: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(directory).map_err(|error| unreadable(directory, &error))?;
    let what = Work::reading("looking for the diagnosis");
    let found = as_user(&invoker()?, &what, || {
        let found = std::fs::canonicalize(&absolute).unwrap_or_else(|_| absolute.clone());
        Ok(Word::from(found.as_os_str()))
    })?;
    Ok(found.to_os_string().into())
}

impl Diagnosed {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read, or is no diagnosis.
    pub fn read(directory: &Path) -> Result<Self, Failure> {
        let invoker = invoker()?;
        let found = as_user(&invoker, &Work::reading("looking at the diagnosis"), || look(directory))?;
        let path = PathBuf::from(found.path.to_os_string());
        let owner = if geteuid().is_root() && found.uid != invoker.uid { user(found.uid)? } else { invoker.clone() };
        let told = as_user(&owner, &Work::reading("reading the diagnosis"), || told(&path))?;
        let is_trusted = found.uid == 0 || found.uid == invoker.uid;
        Ok(Self {
            directory: path,
            command: told.command,
            fixes: told.fixes,
            verdicts: told.verdicts,
            owner,
            is_ours: is_trusted && found.mode & WRITABLE_BY_OTHERS == 0,
        })
    }

    /// The fix of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn fix(&self, name: &str) -> Result<&FixPlan, Failure> {
        self.fixes.iter().find(|plan| plan.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.fixes.iter().map(|plan| plan.name.as_str()).collect();
            let there =
                if names.is_empty() { "it has none".to_owned() } else { format!("it has: {}", names.join(", ")) };
            Failure::new(Kind::Usage, format!("the diagnosis in {} has no fix {name:?}", self.directory.display()))
                .hint(there)
        })
    }

    /// What was concluded about a fix.
    pub fn verdict(&self, plan: &FixPlan) -> Option<&Verdict> {
        self.verdicts.iter().find(|verdict| verdict.arm == plan.name)
    }

    /// What others wrote is shown and not applied: what it sets would run as the invoker.
    ///
    /// # Errors
    /// It belongs to somebody else, or others can write it.
    pub fn require_ours(&self) -> Result<(), Failure> {
        if self.is_ours {
            return Ok(());
        }
        let (place, owner) = (self.directory.display(), &self.owner.user);
        Err(Failure::new(
            Kind::Usage,
            format!("{place} can be written by others than you (it belongs to {owner}): not applied"),
        )
        .hint("`slowpath fix show` shows what it holds; copy it to a directory of your own, mode 0700, to apply it"))
    }

    /// A preload plan of the diagnosis as text: read, checked and written anew, as the owner.
    ///
    /// # Errors
    /// It cannot be read, or is no plan.
    pub fn preload_plan(&self, file: &str) -> Result<String, Failure> {
        as_user(&self.owner, &Work::reading("reading the preload plan"), || {
            let path = self.directory.join(file);
            let wrong = |error: io::Error| unreadable(&path, &error);
            let read = opened(&self.directory, file).and_then(|file| at_most(file, MOST_PLAN_BYTES)).map_err(wrong)?;
            let plan = plan_file::read(BufReader::new(read.as_slice())).map_err(failed(Kind::Usage))?;
            let mut text = Vec::new();
            plan_file::write(&plan, &mut text).map_err(wrong)?;
            String::from_utf8(text).map_err(failed(Kind::Usage))
        })
    }
}

fn user(uid: u32) -> Result<Identity, Failure> {
    let identity = Identity::for_invocation(Some(&uid.to_string()), std::iter::empty());
    identity.map(|(identity, _)| identity).map_err(failed(Kind::Usage))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Kind::Usage, format!("{} cannot be read: {error}", path.display()))
        .hint("DIR is the directory that `slowpath diagnose -o DIR` wrote")
}

fn look(directory: &Path) -> Result<Directory, Failure> {
    let wrong = |error: io::Error| unreadable(directory, &error);
    let path = std::fs::canonicalize(directory).map_err(wrong)?;
    let found = std::fs::symlink_metadata(&path).map_err(wrong)?;
    if !found.is_dir() {
        return Err(wrong(io::ErrorKind::NotADirectory.into()));
    }
    Ok(Directory { path: path.as_os_str().into(), uid: found.uid(), mode: found.mode() })
}

fn told(directory: &Path) -> Result<Told, Failure> {
    let path = directory.join(DIAGNOSIS_FILE);
    let read = opened(directory, DIAGNOSIS_FILE).and_then(|file| at_most(file, MOST_DIAGNOSIS_BYTES));
    let text = read.map_err(|error| unreadable(&path, &error))?;
    let diagnosis = Diagnosis::of_json(&text).map_err(|error| {
        Failure::new(Kind::Usage, format!("{} is no diagnosis: {error}", path.display()))
            .hint("DIR is the directory that `slowpath diagnose -o DIR` wrote")
    })?;
    let command = diagnosis.command.iter().map(|word| Word::from(word.as_str())).collect();
    Ok(Told { command, fixes: diagnosis.fixes, verdicts: diagnosis.verdicts })
}

/// A regular file of the directory, which belongs to whom the directory belongs.
fn opened(directory: &Path, name: &str) -> io::Result<File> {
    let is_plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    if !is_plain {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is no name of a file in the directory"));
    }
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let parent = File::options().read(true).custom_flags(flags).open(directory)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(&parent, OsStr::new(name), flags, Mode::empty())?);
    let (there, place) = (file.metadata()?, parent.metadata()?);
    if !there.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
    }
    if there.uid() != place.uid() && there.uid() != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "belongs to another user than its directory"));
    }
    Ok(file)
}

fn at_most(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("is larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_file_of_the_directory_is_opened() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("in")).unwrap();
        std::fs::write(place.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink("../secret", place.path().join("in/link")).unwrap();
        std::fs::write(place.path().join("in/file"), "x").unwrap();
        let inside = place.path().join("in");
        opened(&inside, "file").unwrap();
        for name in ["link", "../secret", "/etc/passwd", ".", "..", "", "none"] {
            assert!(opened(&inside, name).is_err(), "{name:?}");
        }
        assert!(at_most(opened(&inside, "file").unwrap(), 0).is_err());
    }
}
