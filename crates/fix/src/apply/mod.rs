//! From a fix to files that keep it: what would stand in them, to be read before anything is written, and to be taken back to
//! the byte.
//!
//! One module a kind of file, and one line in [`TARGETS`]: [`wrapper`], [`environment_file`], [`systemd`], [`desktop_file`]. Each
//! owns the syntax of its files: one pure function quotes values for it. [`permissions`] writes no file and changes those that the fix
//! names. [`diff`] shows the change, [`journal`] decides what is
//! written, and what is left alone when it is taken back; [`steps`] carries that out on the files of [`place`] and [`permission_place`], and [`records`] keeps what
//! was there until it is restored; [`made`] knows the diagnoses that root made; [`finish`] does what must not stay half done in a child that outlives a kill. Leaves reading a diagnosis, which change is asked for, and every word to the user, to the command.

pub mod desktop_file;
pub mod diff;
pub mod environment_file;
pub mod error;
pub mod finish;
pub mod journal;
pub mod made;
mod permission_place;
pub mod permissions;
pub mod place;
pub mod records;
pub mod steps;
pub mod systemd;
pub mod wrapper;

use crate::preload_plan::program::ReplayProgram;
use crate::treatment::Treatment;
use crate::word::Word;
use crate::{FixPlan, Scope, readahead_size};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
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

/// Every kind.
pub static TARGETS: [&TargetKind; 5] =
    [&wrapper::TARGET, &environment_file::TARGET, &systemd::TARGET, &desktop_file::TARGET, &permissions::TARGET];

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

/// Why a fix cannot be kept in such a file, and what else helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why not.
    pub reason: String,
    /// What else helps.
    pub remedy: String,
}

impl Refusal {
    /// `reason`, and what helps.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into() }
    }

    /// As a gap: this kind of file, chosen by `option`, for this plan.
    pub fn gap(self, option: &str, plan: &str) -> Unavailable {
        declared::TARGET.of(&[&option, &plan], self.reason, self.remedy)
    }
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

/// Why no file at all can keep a fix.
pub fn refused_everywhere(plan: &FixPlan) -> Option<Refusal> {
    match &plan.treatment {
        Treatment::Environment { .. } | Treatment::PreloadPlan { .. } | Treatment::Files { .. } => None,
        Treatment::Regeneration { .. } => Some(Refusal::new(
            "the command writes files that every later process trusts: slowpath runs it only in a trial, for its own launches",
            plan.changes.first().map_or_else(|| plan.trial.how.clone(), |change| format!("by hand: {}", change.to)),
        )),
        Treatment::PythonPreload { .. } => Some(Refusal::new(
            "the launches of a trial find the modules by a file in the directory of the diagnosis; a program names them itself",
            plan.changes
                .first()
                .map_or_else(|| plan.trial.how.clone(), |change| format!("in the source: {}", change.to)),
        )),
        Treatment::Source { place } => Some(Refusal::new(
            "it is a change of the program's source, which slowpath only shows",
            format!("change the source: {place}"),
        )),
        Treatment::Readahead { kib } => Some(Refusal::new(
            "it is a setting of a device, which affects every program on it",
            readahead_size::by_hand(*kib),
        )),
        Treatment::None if plan.scope == Scope::Source => {
            Some(Refusal::new("it is a change of the program's source", plan.trial.how.clone()))
        }
        Treatment::None if plan.scope == Scope::Machine => {
            Some(Refusal::new("it is a change of this machine, which slowpath only shows", plan.trial.how.clone()))
        }
        Treatment::None => Some(Refusal::new(
            "the diagnosis does not hold the treatment: nothing was tried, or an older slowpath wrote it",
            "diagnose again; `slowpath fix show` shows what the fix changes",
        )),
    }
}

/// Why this kind of file cannot keep this fix.
pub fn refusal(kind: &TargetKind, plan: &FixPlan) -> Option<Refusal> {
    refused_everywhere(plan).or_else(|| match (&kind.keeps, &plan.treatment) {
        (Keeps::Permissions, Treatment::Files { .. }) => None,
        (Keeps::Permissions, _) => Some(Refusal::new("it changes no permissions", "--wrapper PATH")),
        (Keeps::Content(_), Treatment::Files { .. }) => {
            Some(Refusal::new("it is a change of permissions, which a file cannot give", permissions::TARGET.option))
        }
        (Keeps::Content(kind), treatment) => (kind.refuses)(treatment),
    })
}

/// The variables of a treatment, each of a name that every shell and service manager takes.
fn variables(plan: &FixPlan) -> Result<Vec<(&str, &[u8])>, Refusal> {
    let Treatment::Environment { variables } = &plan.treatment else { return Ok(Vec::new()) };
    let checked = variables.iter().map(|(name, value)| {
        let mut bytes = name.bytes();
        let starts = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if !starts || !bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(Refusal::new(format!("{name:?} is no name of a variable"), "diagnose again"));
        }
        no_nul(value.as_bytes())?;
        Ok((name.as_str(), value.as_bytes()))
    });
    checked.collect()
}

fn no_nul(bytes: &[u8]) -> Result<(), Refusal> {
    match bytes.contains(&0) {
        true => Err(Refusal::new(
            "a value holds a NUL byte, which command lines and environments cannot hold",
            "diagnose again",
        )),
        false => Ok(()),
    }
}

/// The value as text of which every character can stand in a file of systemd or of a desktop: no control characters but tab and
/// line feed.
fn plain_text<'a>(name: &str, value: &'a [u8]) -> Result<&'a str, Refusal> {
    let remedy = "--wrapper PATH takes any value";
    let text =
        std::str::from_utf8(value).map_err(|_| Refusal::new(format!("the value of {name} is not UTF-8"), remedy))?;
    match text.chars().find(|c| c.is_ascii_control() && !matches!(c, '\t' | '\n')) {
        Some(found) => Err(Refusal::new(format!("the value of {name} holds the control character {found:?}"), remedy)),
        None => Ok(text),
    }
}

/// A line of a comment: who wrote the file, for which fix, and how it is taken away.
fn comments(plan: &FixPlan) -> String {
    let line = |text: &str| -> String {
        let shown = text.chars().map(|c| if slowpath_tables::is_dangerous(c) { ' ' } else { c });
        shown.take(160).collect()
    };
    format!(
        "# Written by `slowpath fix apply` for the fix {}: {}\n# `slowpath fix undo` takes it back.\n",
        line(&plan.name),
        line(&plan.title)
    )
}

/// A part of a file's name for a fix.
pub fn file_part(name: &str) -> String {
    let shown = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' });
    shown.take(64).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Privilege, Trial};
    use std::collections::HashSet;

    pub(crate) fn plan(treatment: Treatment) -> FixPlan {
        FixPlan {
            fix: "allocator_tunables".to_owned(),
            name: "allocator_tunables".to_owned(),
            title: "glibc keeps memory\nrm -rf /".to_owned(),
            changes: Vec::new(),
            scope: Scope::Launch,
            privilege: Privilege::User,
            side_effects: Vec::new(),
            price: String::new(),
            security_cost: String::new(),
            undo: String::new(),
            trial: Trial { possible: true, how: String::new() },
            treatment,
        }
    }

    /// The inverse of writing `%%` for `%`, which systemd's specifiers and a desktop's field codes share; `None` where a
    /// `%` stands alone and would be expanded.
    pub(crate) fn without_doubled_percent(text: &str) -> Option<String> {
        let mut chars = text.chars();
        let mut out = String::new();
        while let Some(c) = chars.next() {
            if c == '%' && chars.next()? != '%' {
                return None;
            }
            out.push(c);
        }
        Some(out)
    }

    /// What a kind makes of a treatment, for this command.
    pub(crate) fn rendered(
        kind: &TargetKind,
        treatment: Treatment,
        command: &[&str],
        before: Option<&str>,
    ) -> Result<Rendered, Refusal> {
        let command: Vec<Word> = command.iter().map(|word| Word::from(*word)).collect();
        let plan = plan(treatment);
        if let Some(refusal) = refusal(kind, &plan) {
            return Err(refusal);
        }
        let Keeps::Content(kind) = &kind.keeps else { panic!("{} writes no file", kind.name) };
        (kind.render)(&Input {
            plan: &plan,
            command: &command,
            before: before.map(str::as_bytes),
            plan_file: Path::new("/home/u/my plans/x.plan"),
            replay: &ReplayProgram::slowpath(Path::new("/usr/bin/slowpath")),
        })
    }

    pub(crate) fn replay() -> Treatment {
        Treatment::PreloadPlan { file: "preload_plan.plan".to_owned(), sha256: None }
    }

    #[test]
    fn no_two_kinds_share_a_name_or_an_option() {
        for of in [|kind: &TargetKind| kind.name, |kind: &TargetKind| kind.option] {
            let names: HashSet<_> = TARGETS.iter().map(|kind| of(kind)).collect();
            assert_eq!(names.len(), TARGETS.len());
        }
    }

    #[test]
    fn names_that_a_shell_would_obey_and_nul_bytes_are_refused_everywhere() {
        for (name, value) in [("A B", "x"), ("A;reboot", "x"), ("", "x"), ("1A", "x"), ("A", "x\0y"), ("A\n", "x")] {
            for kind in &TARGETS {
                let needs = |kind: &ContentKind| kind.file == FileNeed::Existing;
                let is_changed = matches!(&kind.keeps, Keeps::Content(kind) if needs(kind));
                let before = Some("[Desktop Entry]\nExec=x\n").filter(|_| is_changed);
                let made = rendered(kind, Treatment::variable(name, value), &["true"], before);
                assert!(made.is_err(), "{}: {name:?}={value:?}", kind.name);
            }
        }
    }

    #[test]
    fn a_title_of_several_lines_stays_in_its_comment() {
        let told = comments(&plan(Treatment::None));
        assert!(told.lines().all(|line| line.starts_with("# ")), "{told}");
    }

    #[test]
    fn what_is_no_change_of_a_launch_is_shown_and_not_kept() {
        let source = plan(Treatment::Source { place: "copy (a.c:1)".to_owned() });
        assert!(refused_everywhere(&source).unwrap().remedy.contains("a.c:1"));
        assert!(refused_everywhere(&plan(Treatment::None)).unwrap().remedy.contains("diagnose again"));
        let device = plan(Treatment::Readahead { kib: 512 });
        assert!(refused_everywhere(&device).unwrap().remedy.contains("blockdev --setra 1024 "));
        assert_eq!(refused_everywhere(&plan(replay())), None);
    }

    #[test]
    fn permissions_are_kept_in_the_files_themselves_and_variables_are_not() {
        let files = plan(Treatment::Files { files: Vec::new() });
        let refused = |plan: &FixPlan| TARGETS.map(|kind| refusal(kind, plan).is_some());
        assert_eq!(refused(&files), [true, true, true, true, false]);
        assert_eq!(refused(&plan(Treatment::variable("A", "b"))), [false, false, false, false, true]);
    }

    #[test]
    fn a_name_of_a_fix_is_no_path() {
        assert_eq!(file_part("../reuse_buffer 2"), "---reuse_buffer-2");
    }
}
