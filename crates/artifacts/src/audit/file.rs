//! One file and one user: the state that an audit reports, and that of a file which its owner names and no family knows.

use super::artifact::{DeniedBy, State, commands};
use crate::access::{Access, Decision, FileKind, Identity, Lookup, LookupEnd, decide, smallest_change};
use crate::disk;
use crate::families::{self, Family, Freshness};
use crate::gather::{LookupError, Machine, ResolvedPath};
use std::cell::OnceCell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// By what a named file fits what it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FitsBy {
    /// By the rule of the family that its path belongs to.
    Family,
    /// It was modified at the time of this file or later, as make(1) has it.
    NotOlderThan(PathBuf),
    /// Whoever may read it can use it.
    Reading,
}

/// What an audit says of one file for one user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Whether it can be used; `None` where processes of the user do not look for it, and `reason` says why.
    pub state: Option<State>,
    /// Who denies, where it is unreadable.
    pub denied_by: Option<DeniedBy>,
    /// The smallest change of permissions that would allow, as commands of a shell.
    pub change: Option<String>,
    /// Why it is stale, missing, unknown or not looked for.
    pub reason: Option<String>,
}

impl Judged {
    fn because(state: State, reason: impl Into<String>) -> Self {
        Self { state: Some(state), reason: Some(reason.into()), ..Self::default() }
    }

    fn not_looked_for(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }
}

/// A regular file that its owner names by an absolute path, as it is now. Looked up once, judged for many users.
pub struct NamedFile<'a> {
    path: &'a Path,
    fits_by: &'a FitsBy,
    family: Option<&'static Family>,
    /// What it led to; the state for everybody, where that is no file.
    found: Result<ResolvedPath, Judged>,
    freshness: OnceCell<Freshness>,
}

impl<'a> NamedFile<'a> {
    /// Looks it up, with the rights of the calling process. Symbolic links are followed.
    pub fn look_up(machine: &Machine, path: &'a Path, fits_by: &'a FitsBy) -> Self {
        let found = match machine.look_up(path) {
            Ok(ResolvedPath { lookup: Lookup { end: LookupEnd::File(facts), .. }, .. })
                if facts.kind != FileKind::Regular =>
            {
                Err(Judged::because(State::Unknown, "it is no regular file"))
            }
            Ok(found) => Ok(found),
            Err(error @ LookupError::Missing { .. }) => Err(Judged::because(State::Missing, error.to_string())),
            Err(LookupError::Io { path, source }) => {
                Err(Judged::because(State::Unknown, format!("{} cannot be looked up: {source}", path.display())))
            }
            Err(error) => Err(Judged::because(State::Unknown, error.to_string())),
        };
        let family = families::of_file(path);
        Self { path, fits_by, family, found, freshness: OnceCell::new() }
    }

    /// Its state for a user.
    pub fn judge(&self, identity: &Identity) -> Judged {
        if let Some(family) = self.family
            && !(family.is_needed_by)(self.path, identity.uid)
        {
            let (uid, title) = (identity.uid, family.title);
            return Judged::not_looked_for(format!("processes of uid {uid} look for none of {title}"));
        }
        match &self.found {
            Ok(found) => judged(identity, &found.lookup, Access::Read, || {
                self.freshness.get_or_init(|| self.freshness()).clone()
            }),
            Err(judged) => judged.clone(),
        }
    }

    fn freshness(&self) -> Freshness {
        match (self.fits_by, self.family) {
            (FitsBy::Reading, _) => Freshness::Current,
            (FitsBy::NotOlderThan(source), _) => not_older(self.path, source),
            (FitsBy::Family, Some(family)) => family.freshness.file(self.path),
            (FitsBy::Family, None) => Freshness::Unknown("no family knows its name".to_owned()),
        }
    }
}

/// The state of what a lookup leads to. `freshness` is asked for only where the file may be read.
pub(super) fn judged(
    identity: &Identity,
    lookup: &Lookup,
    access: Access,
    freshness: impl FnOnce() -> Freshness,
) -> Judged {
    match decide(identity, lookup, access) {
        Decision::Denied(denial) => Judged {
            state: Some(State::Unreadable),
            denied_by: Some((&denial).into()),
            change: smallest_change(identity, lookup, access).map(|changes| commands(&changes)),
            reason: None,
        },
        Decision::Unknown { why } => Judged::because(State::Unknown, why),
        Decision::Allowed if access == Access::Search => {
            Judged::because(State::Unknown, "its directory may be searched but not be listed by the user of slowpath")
        }
        Decision::Allowed => match freshness() {
            Freshness::Current => Judged { state: Some(State::Usable), ..Judged::default() },
            Freshness::Stale(why) => Judged::because(State::Stale, why),
            Freshness::Unknown(why) => Judged::because(State::Unknown, format!("it may be read, but {why}")),
            Freshness::Unused(why) => Judged::not_looked_for(why),
        },
    }
}

/// How a file stands to its source by their times alone.
fn not_older(path: &Path, source: &Path) -> Freshness {
    let made_from = match disk::stamp(source) {
        Ok(stamp) => stamp.modified,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Freshness::Unknown(format!("{}, which it is made from, does not exist", source.display()));
        }
        Err(error) => return Freshness::Unknown(format!("{} cannot be looked at: {error}", source.display())),
    };
    match disk::stamp(path) {
        Ok(stamp) if stamp.modified >= made_from => Freshness::Current,
        Ok(stamp) => {
            let seconds = made_from.0.wrapping_sub(stamp.modified.0);
            Freshness::Stale(format!("{} was modified {seconds} s after it", source.display()))
        }
        Err(error) => Freshness::Unknown(format!("its time cannot be looked at: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

    fn of(path: &Path, fits_by: &FitsBy) -> Judged {
        NamedFile::look_up(&Machine::read().unwrap(), path, fits_by).judge(&Identity::new(65534, 65534, Vec::new()))
    }

    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        place
    }

    #[test]
    fn a_file_is_stale_when_its_source_is_younger_and_unknown_when_that_is_gone() {
        let place = place();
        let (made, source) = (place.path().join("made"), place.path().join("source"));
        for path in [&made, &source] {
            fs::write(path, "").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        let now = SystemTime::now();
        let set = |path: &Path, time| File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        set(&made, now);
        set(&source, now);
        let fits_by = FitsBy::NotOlderThan(source.clone());
        assert_eq!(of(&made, &fits_by).state, Some(State::Usable), "of one moment");
        set(&source, now + Duration::from_secs(7));
        let stale = of(&made, &fits_by);
        assert!(stale.state == Some(State::Stale) && stale.reason.unwrap().ends_with("modified 7 s after it"));
        assert_eq!(of(&made, &FitsBy::Reading).state, Some(State::Usable));
        assert_eq!(of(&made, &FitsBy::Family).state, Some(State::Unknown));
        fs::remove_file(&source).unwrap();
        assert_eq!(of(&made, &fits_by).state, Some(State::Unknown));
    }

    #[test]
    fn what_is_no_readable_regular_file_is_never_usable() {
        let place = place();
        let file = place.path().join("file");
        assert_eq!(of(&file, &FitsBy::Reading).state, Some(State::Missing));
        assert_eq!(of(place.path(), &FitsBy::Reading).state, Some(State::Unknown));
        assert_eq!(of(Path::new("file"), &FitsBy::Reading).state, Some(State::Unknown));
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let denied = of(&file, &FitsBy::Reading);
        assert_eq!(denied.denied_by.unwrap().path, file.to_str().unwrap());
        assert_eq!(denied.change.unwrap(), format!("chmod o+r {}", file.display()));
    }
}
