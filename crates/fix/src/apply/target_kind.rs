//! What a kind of file declares, and what it makes: the file's content from a fix.

use super::refusal::Refusal;
use crate::plan::FixPlan;
use crate::preload_plan::program::ReplayProgram;
use crate::treatment::Treatment;
use crate::word::Word;
use std::path::Path;

/// A kind of file in which a fix can be kept.
pub struct TargetKind {
    /// Its name in JSON.
    pub name: &'static str,
    /// The option that names one, as a user writes it.
    pub option: &'static str,
    /// What is made there, for a reader.
    pub title: &'static str,
    /// How it keeps a fix.
    pub keeps: Keeps,
}

/// How a kind keeps a fix.
pub enum Keeps {
    /// In the content of a file.
    Content(ContentKind),
    /// In the permissions of the files that the fix names.
    Permissions,
}

/// A kind of file that is written.
pub struct ContentKind {
    /// Whether the file is made new, or one that is there is changed.
    pub file: FileNeed,
    /// Whether directories are made for it where there are none.
    pub makes_directories: bool,
    /// Why this kind cannot keep a treatment.
    pub refuses: fn(&Treatment) -> Option<Refusal>,
    /// What would stand in the file.
    pub render: fn(&Input<'_>) -> Result<Rendered, Refusal>,
}

/// Whether there must be a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileNeed {
    /// It is made, and must not be there.
    New,
    /// It is made, or what is there is changed.
    Any,
    /// It is changed, and must be there.
    Existing,
}

/// What a file is made from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The fix.
    pub plan: &'a FixPlan,
    /// The command that was diagnosed, or one that stands for it.
    pub command: &'a [Word],
    /// What stands in the file now.
    pub before: Option<&'a [u8]>,
    /// Where the preload plan will be, absolute.
    pub plan_file: &'a Path,
    /// What replays it.
    pub replay: &'a ReplayProgram,
}

/// What would stand in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Its content.
    pub content: Vec<u8>,
    /// Its mode where it is made new.
    pub mode: u32,
    /// What a reader should know of it.
    pub remarks: Vec<String>,
    /// What is still to be done for the fix to take effect.
    pub then: String,
}
