//! An audit: which artifacts lie below some paths, and whether one user can use them.
//!
//! Owns the walk with its limits, and the state of each artifact, also of one file that a caller names ([`NamedFile`]). Looks with the
//! rights of the calling process, and decides for another user by the evaluator. Opens nothing but directories and the regular files of
//! known families; follows no symbolic link below a given path; enters no file system whose answers come from a server.

mod artifact;
mod file;
mod listed;
mod places;
mod printed;
mod walk;

pub use artifact::{Artifact, DeniedBy, State};
pub use file::{FitsBy, Judged, NamedFile};
pub use listed::audit_listing;
pub use places::standard_places;
pub use printed::{AUDIT_SCHEMA, Audited, AuditedUser};

use crate::access::{Access, Component, FileKind, Identity, Lookup, LookupEnd};
use crate::families::{self, Family};
use crate::gather::{LookupError, Machine};
use artifact::text;
use file::judged;
use rustix::fd::OwnedFd;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::collections::BTreeSet;
use std::path::Path;

/// Where an audit ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Names in directories that are looked at, of all paths together.
    pub entries: u64,
    /// Directories in each other.
    pub depth: usize,
    /// Bytes of the artifacts' texts together: what an audit says crosses the border of a process as JSON
    /// ([`slowpath_process::MOST_BYTES`]).
    pub text: usize,
}

impl Limits {
    /// A distribution with a desktop has some 500,000 names in /usr; paths are at most 4096 bytes, and real trees 20 deep.
    pub const DEFAULT: Self = Self { entries: 2_000_000, depth: 64, text: slowpath_process::MOST_BYTES / 4 * 3 };
}

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audit {
    /// The artifacts, the ones to act on first, then by path.
    pub artifacts: Vec<Artifact>,
    /// What could not be looked at.
    pub unavailable: Vec<Unavailable>,
    /// Names that were looked at.
    pub entries: u64,
}

/// Audits what lies at and below `paths`, for `identity`. `progress` is called now and then with the number of names so far.
pub fn audit(
    machine: &Machine,
    identity: &Identity,
    paths: &[&Path],
    limits: Limits,
    progress: &mut dyn FnMut(u64),
) -> Audit {
    let mut auditor = Auditor::new(machine, identity, limits, progress);
    for path in paths {
        auditor.path(path);
    }
    auditor.done()
}

/// Audits those of `files` that are artifacts, and the artifacts beside each of them: in its directory, and in directories there that are
/// of one family as a whole (`__pycache__`).
pub fn audit_beside(
    machine: &Machine,
    identity: &Identity,
    files: &[&Path],
    limits: Limits,
    progress: &mut dyn FnMut(u64),
) -> Audit {
    let mut auditor = Auditor::new(machine, identity, limits, progress);
    for file in files.iter().filter(|file| families::is_artifact(file)) {
        auditor.path(file);
    }
    let directories: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    for directory in directories {
        auditor.beside(directory);
    }
    auditor.done()
}

struct Auditor<'a> {
    machine: &'a Machine,
    identity: &'a Identity,
    limits: Limits,
    progress: &'a mut dyn FnMut(u64),
    found: Audit,
    /// Directories that the calling process may not list.
    unlisted: Vec<String>,
    /// Artifacts that two paths lead to are one.
    seen: BTreeSet<String>,
    /// Bytes of the artifacts' texts so far.
    text: usize,
    is_cut: bool,
}

impl<'a> Auditor<'a> {
    fn new(machine: &'a Machine, identity: &'a Identity, limits: Limits, progress: &'a mut dyn FnMut(u64)) -> Self {
        let (found, unlisted, seen) = Default::default();
        Self { machine, identity, limits, progress, found, unlisted, seen, text: 0, is_cut: false }
    }

    fn path(&mut self, path: &Path) {
        let found = match self.machine.look_up(path) {
            Ok(found) => found,
            Err(error) => return self.not_found(path, &error),
        };
        match (&found.lookup.end, found.file) {
            (LookupEnd::File(facts), Some((at, file))) => {
                let (facts, lookup) = (facts.clone(), &found.lookup);
                self.file(&at, &facts, lookup, &file);
            }
            (end, _) => self.blocked(path, end, &found.lookup),
        }
    }

    /// A given path that leads nowhere.
    fn not_found(&mut self, path: &Path, error: &LookupError) {
        match (error, families::of(path, FileKind::Regular)) {
            (LookupError::Missing { .. }, Some(family)) => {
                self.add(path, family, State::Missing, None, None, Some("it does not exist".to_owned()));
            }
            (LookupError::Io { source, .. }, _) => {
                self.gap(text(path), format!("{error}: {source}"), "none: the kernel refuses");
            }
            _ => self.gap(text(path), error.to_string(), "name a path that exists"),
        }
    }

    /// A given path that the calling process cannot look at; the user may be denied on the way to it for certain.
    fn blocked(&mut self, path: &Path, end: &LookupEnd, lookup: &Lookup) {
        let family = families::of(path, FileKind::Regular).or_else(|| families::of(path, FileKind::Directory));
        match family {
            Some(family) => self.judge(path, family, lookup, Access::Read),
            None => {
                let why = if let LookupEnd::Blocked(why) = end { why.clone() } else { String::new() };
                self.gap(text(path), why, "run it with sudo, and --as for the user");
            }
        }
    }

    /// A file or directory that was reached.
    fn file(&mut self, path: &Path, facts: &Component, lookup: &Lookup, file: &OwnedFd) {
        if let Some(why) = &facts.mount.undecidable {
            return self.gap(
                text(path),
                format!("not looked at: {why}"),
                "none: only there can be said who may do what",
            );
        }
        match facts.kind {
            FileKind::Directory => self.directory(path, lookup, file, 0),
            kind => {
                if let Some(family) = families::of(path, kind) {
                    self.judge(path, family, lookup, Access::Read);
                }
            }
        }
    }

    /// Decides about one artifact.
    fn judge(&mut self, path: &Path, family: &Family, lookup: &Lookup, access: Access) {
        if !(family.is_needed_by)(path, self.identity.uid) {
            return;
        }
        let Judged { state, denied_by, change, reason } =
            judged(self.identity, lookup, access, || family.freshness.file(path));
        // What nobody looks for costs nobody anything.
        if let Some(state) = state {
            self.add(path, family, state, denied_by, change, reason);
        }
    }

    fn add(
        &mut self,
        path: &Path,
        family: &Family,
        state: State,
        denied_by: Option<DeniedBy>,
        change: Option<String>,
        reason: Option<String>,
    ) {
        let path = text(path);
        if self.text >= self.limits.text {
            self.is_cut = true;
        } else if self.seen.insert(path.clone()) {
            let (family, uid) = (family.name.to_owned(), self.identity.uid);
            let artifact = Artifact { path, family, state, uid, denied_by, change, reason, cost: None };
            self.text += artifact.text_bytes();
            self.found.artifacts.push(artifact);
        }
    }

    fn gap(&mut self, path: String, reason: String, remedy: &str) {
        self.unavailable(declared::AUDITED_PATH.of(&[&path], reason, remedy));
    }

    fn unavailable(&mut self, gap: Unavailable) {
        if !self.found.unavailable.contains(&gap) {
            self.found.unavailable.push(gap);
        }
    }

    fn done(mut self) -> Audit {
        if let Some(first) = self.unlisted.first().cloned() {
            let what = match self.unlisted.len() {
                1 => first,
                many => format!("{first} and {} more directories", many - 1),
            };
            let reason = "the user of slowpath may not list it".to_owned();
            self.gap(what, reason, "run it with sudo, and --as for the user");
        }
        if self.is_cut {
            let (names, artifacts, depth) = (self.found.entries, self.found.artifacts.len(), self.limits.depth);
            let reason = format!(
                "the audit ended after {names} names and {artifacts} artifacts, {depth} directories deep at most"
            );
            self.unavailable(declared::REST_OF_AUDIT.because(reason, "name fewer paths, or raise --max-entries"));
        }
        sort(&mut self.found);
        self.found
    }
}

/// The ones to act on first, then by path.
fn sort(audit: &mut Audit) {
    audit.artifacts.sort_by(|a, b| (a.state, &a.path).cmp(&(b.state, &b.path)));
}

#[cfg(test)]
mod tests;
