//! The diagnosis of a directory, read without trust: by a worker, as the user to whom the directory belongs.
//!
//! That user's programs can rewrite it, so root applies what root itself noted when it made the diagnosis ([`remember`]), or what a person
//! has seen and names by its digest ([`Diagnosed::trust`]).

use super::failures::failure;
use crate::directory::DIAGNOSIS_FILE;
use crate::printed::{Diagnosis, MOST_DIAGNOSIS_BYTES, Verdict};
use nix::unistd::geteuid;
use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};
use slowpath_fix::apply::made::{MadeDiagnoses, made};
use slowpath_fix::preload_plan::file as plan_file;
use slowpath_fix::{FixPlan, Word, is_same_name, sha256};
use slowpath_launch::Identity;
use slowpath_process::Duty;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
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
}

/// Who could have written what was read, by the descriptors that it was read from: a path can lead elsewhere a moment later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Writers {
    /// Owner of the directory, and of the file or root.
    uid: u32,
    /// Whether others have write permission to one of them.
    others: bool,
}

impl Writers {
    /// Whether only root and this user could have.
    fn are_only(self, uid: u32) -> bool {
        !self.others && (self.uid == 0 || self.uid == uid)
    }
}

/// A diagnosis as it was read.
#[derive(Debug, Serialize, Deserialize)]
struct Text {
    bytes: Word,
    writers: Writers,
}

/// What a diagnosis says of its fixes.
#[derive(Debug, Serialize, Deserialize)]
struct Contents {
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
    /// Who asks: root only for itself.
    pub invoker: u32,
    is_ours: bool,
    sha256: String,
    /// Whether root made it, for who asks now, and it is unchanged; why that is not known.
    is_made: Result<bool, Failure>,
}

/// Notes a diagnosis that root made, before its text is written into `directory`: so root knows it again. Nothing without root.
///
/// # Errors
/// It cannot be noted.
pub fn remember(directory: &Path, text: &str) -> Result<(), Failure> {
    if !geteuid().is_root() {
        return Ok(());
    }
    MadeDiagnoses::of_root().note(made(directory, invoker()?.uid, text.as_bytes())).map_err(failure)
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
        let text = as_user(&owner, &Work::reading("reading the diagnosis"), || text(&path))?;
        let bytes = text.bytes.as_bytes();
        let is_made = match geteuid().is_root() {
            true => MadeDiagnoses::of_root().has(&made(&path, invoker.uid, bytes)).map_err(failure),
            false => Ok(false),
        };
        let contents = as_user(&owner, &Work::new("reading the diagnosis", Duty::Parse), || contents(&path, bytes))?;
        Ok(Self {
            sha256: sha256(bytes),
            is_made,
            directory: path,
            command: contents.command,
            fixes: contents.fixes,
            verdicts: contents.verdicts,
            is_ours: text.writers.are_only(invoker.uid),
            invoker: invoker.uid,
            owner,
        })
    }

    /// The fix of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn fix(&self, name: &str) -> Result<&FixPlan, Failure> {
        self.fixes.iter().find(|plan| is_same_name(&plan.name, name)).ok_or_else(|| {
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

    /// What others can have written is shown and not applied: what it sets would run as the invoker. As root the owner's own programs are
    /// such others, so there it must be a diagnosis that root made, or the one of which `trusted` is the digest.
    ///
    /// # Errors
    /// Others can have written it.
    pub fn require_trusted(&self, trusted: Option<&str>) -> Result<(), Failure> {
        if !geteuid().is_root() {
            return self.require_ours();
        }
        if matches!(self.is_made, Ok(true)) {
            return Ok(());
        }
        self.require_ours()?;
        let place = self.directory.display();
        match (trusted, &self.is_made) {
            (Some(trusted), _) if trusted.eq_ignore_ascii_case(&self.sha256) => Ok(()),
            (Some(_), _) => Err(Failure::new(
                Kind::Check,
                format!("the diagnosis in {place} is not the one of --trust-diagnosis: it was changed since"),
            )
            .hint("`slowpath fix show` as root, with the same options, shows what it would change now")),
            (None, Err(failure)) => Err(failure.clone()),
            (None, Ok(_)) => Err(Failure::new(
                Kind::Usage,
                format!(
                    "root has no record of the diagnosis in {place}: it was made without root, or changed, copied or moved since, or \
                     /var/lib/slowpath was emptied: not applied"
                ),
            )
            .hint(
                "diagnose again with sudo; or `slowpath fix show` as root, with the same options, shows the change, and the \
                 --trust-diagnosis that lets `apply` make it",
            )),
        }
    }

    /// What `fix apply` as root takes for this diagnosis as it was read; `None` where it needs nothing.
    pub fn trust(&self) -> Option<String> {
        (geteuid().is_root() && !matches!(self.is_made, Ok(true))).then(|| self.sha256.clone())
    }

    fn require_ours(&self) -> Result<(), Failure> {
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

    /// A preload plan of the diagnosis as text: read, checked and written anew, as the owner. `digest` is what the diagnosis says of it.
    ///
    /// # Errors
    /// It cannot be read, or is no plan.
    pub fn preload_plan(&self, file: &str, digest: Option<&str>) -> Result<String, Failure> {
        as_user(&self.owner, &Work::reading("reading the preload plan"), || {
            let path = self.directory.join(file);
            let wrong = |error: io::Error| unreadable(&path, &error);
            let (opened, writers) = opened(&self.directory, file).map_err(wrong)?;
            if self.is_ours && !writers.are_only(self.invoker) {
                return Err(wrong(io::Error::new(io::ErrorKind::PermissionDenied, "others than you can write it")));
            }
            let read = at_most(opened, MOST_PLAN_BYTES).map_err(wrong)?;
            if digest.is_some_and(|digest| digest != sha256(&read)) {
                return Err(wrong(io::Error::other("it is not the plan that was tried: it was changed since")));
            }
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
    Ok(Directory { path: path.as_os_str().into(), uid: found.uid() })
}

fn text(directory: &Path) -> Result<Text, Failure> {
    let read = opened(directory, DIAGNOSIS_FILE)
        .and_then(|(file, writers)| Ok(Text { bytes: at_most(file, MOST_DIAGNOSIS_BYTES)?.into(), writers }));
    read.map_err(|error| unreadable(&directory.join(DIAGNOSIS_FILE), &error))
}

fn contents(directory: &Path, text: &[u8]) -> Result<Contents, Failure> {
    let path = directory.join(DIAGNOSIS_FILE);
    let diagnosis = Diagnosis::of_json(text).map_err(|error| {
        Failure::new(Kind::Usage, format!("{} is no diagnosis: {error}", path.display()))
            .hint("DIR is the directory that `slowpath diagnose -o DIR` wrote")
    })?;
    let command = diagnosis.command.iter().map(|word| Word::from(word.as_str())).collect();
    Ok(Contents { command, fixes: diagnosis.fixes, verdicts: diagnosis.verdicts })
}

/// A regular file of the directory, which belongs to whom the directory belongs or to root, and who could have written it.
fn opened(directory: &Path, name: &str) -> io::Result<(File, Writers)> {
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
    let others = (there.mode() | place.mode()) & WRITABLE_BY_OTHERS != 0;
    Ok((file, Writers { uid: place.uid(), others }))
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
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

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
        assert!(at_most(opened(&inside, "file").unwrap().0, 0).is_err());
    }

    #[test]
    fn a_file_or_a_directory_that_others_can_write_is_not_only_the_owners() {
        let place = tempfile::tempdir().unwrap();
        let (file, uid) = (place.path().join("file"), geteuid().as_raw());
        std::fs::write(&file, "x").unwrap();
        let only = |mode_of_directory: u32, mode_of_file: u32| {
            std::fs::set_permissions(place.path(), Permissions::from_mode(mode_of_directory)).unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(mode_of_file)).unwrap();
            opened(place.path(), "file").unwrap().1.are_only(uid)
        };
        assert!(only(0o755, 0o644) && only(0o700, 0o600));
        assert!(!only(0o777, 0o644) && !only(0o755, 0o666) && !only(0o775, 0o644) && !only(0o755, 0o664));
        let writers = Writers { uid: 7, others: false };
        assert!(writers.are_only(7) && !writers.are_only(8) && Writers { uid: 0, ..writers }.are_only(8));
    }
}
