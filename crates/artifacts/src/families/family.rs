//! What a family of artifacts is: how its files are known, what they are made from, when they are stale, and what happens without them.

use crate::access::FileKind;
use std::ffi::OsString;
use std::path::Path;

/// A family, declared. Each stands in its own file; [`super::ALL`] lists them.
#[derive(Clone, Copy)]
pub struct Family {
    /// Its name in JSON and on the command line (`python_bytecode`).
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// By which names its files are known.
    pub recognised_by: &'static str,
    /// What they are made from.
    pub derives_from: &'static str,
    /// When one is stale, and when that cannot be decided.
    pub stale_when: &'static str,
    /// What a process does without one, and how that shows.
    pub fallback: &'static str,
    /// How to repair it by hand.
    pub by_hand: &'static str,
    /// What regenerates it where its user may save it, as a trial does.
    pub regeneration: Regeneration,
    /// How a program is pointed to a copy in another place, which several users may read; empty where none can be.
    pub shared_by: &'static str,
    /// What shows that a process did that.
    pub trace: Trace,
    /// Whether a file or directory belongs to it, by its path and kind. A directory does where everything below it is of the family.
    pub(crate) recognises: fn(&Path, FileKind) -> bool,
    /// Whether processes of this user look for the file at all.
    pub(crate) is_needed_by: fn(&Path, u32) -> bool,
    /// How it is found out whether a file fits what it was made from.
    pub(crate) freshness: FreshnessOf,
    /// What should be in this directory, which holds these names, and is not.
    pub(crate) missing: fn(&Path, &[OsString]) -> Option<Missing>,
}

impl std::fmt::Debug for Family {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

/// What regenerates artifacts.
#[derive(Clone, Copy, Debug)]
pub struct Regeneration {
    /// What that is, for a reader.
    pub words: &'static str,
    /// The commands for these artifacts, each a program and its arguments; none: the program that needs them makes them.
    pub(crate) commands: fn(&[&Path]) -> Vec<Vec<OsString>>,
}

impl Regeneration {
    /// Of families whose artifacts the program that needs them saves, where it may.
    pub(crate) const BY_THE_PROGRAM: Self =
        Self { words: "the program that needs it, started once where it may save it", commands: |_| Vec::new() };

    /// The commands for these artifacts; none: the program that needs them, started once where it may save them.
    pub fn commands(&self, artifacts: &[&Path]) -> Vec<Vec<OsString>> {
        (self.commands)(artifacts)
    }
}

/// What the opens of a process show of the work that it does without an artifact.
#[derive(Clone, Copy, Debug)]
pub enum Trace {
    /// What they show of any file: the result is saved, or a file of a like name is read instead. Without that the process did no work.
    OfAnyFile,
    /// It reads the files that the artifact was made from, which lie in one directory, one after the other, and then turns to others.
    ReadsSources {
        /// Whether a file can be the first of them, by its path.
        is_source: fn(&Path) -> bool,
    },
    /// It reads the source first and then looks for the artifact, one after the other; the results are saved when the process ends. The work
    /// goes on until the next file is opened. Where the directory for the artifacts cannot be made, it looks for none.
    SourceFirst,
    /// None: the work is done bit by bit, by every process that is denied and has loaded this library. Others only read files.
    AllAlong {
        /// Its file's name.
        library: &'static str,
    },
    /// None: no work is done again.
    NoWork,
}

impl Trace {
    /// What it is, in a sentence.
    pub fn what(self) -> &'static str {
        match self {
            Self::OfAnyFile => {
                "the result that is saved, or refused to be, or a source of a like name that is read instead"
            }
            Self::ReadsSources { .. } => {
                "the sources that are read one after the other, until the process turns to other files"
            }
            Self::SourceFirst => {
                "the source that is read before each artifact that is denied, until the next file is opened; or the directory \
                 for them that cannot be made: then all CPU time of the process is an upper bound"
            }
            Self::AllAlong { .. } => {
                "nothing: all CPU time of the process is an upper bound, and the trial of `grant_read` says what it is"
            }
            Self::NoWork => "no work that is done again: what is missing shows by itself",
        }
    }
}

/// How it is found out whether a file of a family is fresh.
#[derive(Clone, Copy)]
pub(crate) enum FreshnessOf {
    /// By looking at it.
    Looking(fn(&Path) -> Freshness),
    /// It never is: why not.
    Nothing(&'static str),
}

impl FreshnessOf {
    /// How this file stands to what it was made from.
    pub(crate) fn file(self, path: &Path) -> Freshness {
        match self {
            Self::Looking(look) => look(path),
            Self::Nothing(why) => Freshness::Unknown(why.to_owned()),
        }
    }
}

/// How a file stands to what it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It fits.
    Current,
    /// It does not, and is not used: why.
    Stale(String),
    /// Nothing looks for it any more: why.
    Unused(String),
    /// It cannot be decided from here: why.
    Unknown(String),
}

/// An artifact that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name in the directory.
    pub name: OsString,
    /// Why it should be there.
    pub why: &'static str,
    /// Who may write the directory makes it at the first use, so that only others miss it for good.
    pub is_made_at_first_use: bool,
}

/// Of families whose files everybody looks for.
pub(super) fn everybody(_: &Path, _: u32) -> bool {
    true
}

/// Of families that are made on demand: their absence says nothing.
pub(super) fn never_missing(_: &Path, _: &[OsString]) -> Option<Missing> {
    None
}

/// The name of a path as text; empty where it is none.
pub(super) fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The name of the directory that holds it.
pub(super) fn parent_name(path: &Path) -> &str {
    path.parent().map(name).unwrap_or_default()
}

/// Whether one of the directories on the way, or the path itself, has one of these names.
pub(super) fn lies_in(path: &Path, names: &[&str]) -> bool {
    path.iter().any(|part| names.iter().any(|name| part == *name))
}

/// Of families that own directories of these names: the directories, and the files below them.
pub(super) fn is_below(path: &Path, kind: FileKind, names: &[&str]) -> bool {
    match kind {
        FileKind::Directory => names.contains(&name(path)),
        FileKind::Regular => path.parent().is_some_and(|parent| lies_in(parent, names)),
        _ => false,
    }
}

/// Whether a directory holds this name.
pub(super) fn holds(names: &[OsString], wanted: &str) -> bool {
    names.iter().any(|name| name == wanted)
}
