//! What was changed for a fix, written down before it is changed: enough to restore every file to the byte, whenever slowpath was
//! killed.
//!
//! Owns the record, which version of a file is there by it ([`FileVersion`]), and what is to be done next ([`Journal::next`]). Each step
//! changes one file by one rename, one removal or one change of its permissions, so a file is as before or as applied at any moment.
//! Leaves reading and writing to [`super::steps`], which looks at every file anew before each step.
//!
//! ```text
//! (none) -- begin --> applying -- every file is as applied --> applied -- undo --> undoing -- every file is as before --> (none)
//!                        `------------- undo, also after a crash ------------------^
//! ```

use super::file_version::FileVersion;
use super::permissions::PermissionChange;
use crate::word::Word;
use serde::{Deserialize, Serialize};

/// Name and version of the format.
pub const SCHEMA: &str = "slowpath-fix-journal/1";

/// How far a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Files are being written, or whoever did it was killed.
    Applying,
    /// Every file was written.
    Applied,
    /// Files are being restored, or whoever did it was killed.
    Undoing,
}

/// A file as it was, or as it is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileContent {
    /// Its bytes.
    pub content: Word,
    /// Permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Time of its last change, seconds and ns since 1970; `None` is the time at which it is written.
    pub modified: Option<(i64, u32)>,
}

impl FileContent {
    /// Whether this is the same file but for its times.
    pub fn is_same(&self, other: &Self) -> bool {
        let of = |file: &Self| (file.mode, file.uid, file.gid);
        of(self) == of(other) && self.content.as_bytes() == other.content.as_bytes()
    }
}

/// One file of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Absolute path.
    pub path: Word,
    /// Name beside it under which its new content is written first.
    pub temporary: String,
    /// Before; `None` where there was no file.
    pub before: Option<FileContent>,
    /// With the fix.
    pub after: FileContent,
}

impl FileChange {
    /// What a file is by this record; `None` where there is none.
    pub fn find(&self, there: Option<&FileContent>) -> FileVersion {
        match (there, &self.before) {
            (Some(there), _) if there.is_same(&self.after) => FileVersion::After,
            (Some(there), Some(before)) if there.is_same(before) => FileVersion::Before,
            (None, None) => FileVersion::Before,
            _ => FileVersion::Other,
        }
    }
}

/// A change that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// [`SCHEMA`].
    pub schema: String,
    /// How far it is.
    pub state: State,
    /// The directory of the diagnosis, absolute.
    pub directory: Word,
    /// Name of the fix.
    pub fix: String,
    /// Kind of target.
    pub target: String,
    /// Directories that were not there, outermost first.
    pub made: Vec<Word>,
    /// The files, in the order in which they are written: what others need comes first.
    pub files: Vec<FileChange>,
    /// Files of which the permissions change, directories behind what lies below them: nobody gets in before all is done, and nobody is in
    /// any more when it is taken back. They are numbered behind the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<PermissionChange>,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// This file gets its content with the fix.
    Apply(usize),
    /// This file gets its content of before, or goes.
    Restore(usize),
    /// The state is written down.
    Become(State),
    /// Directories that were made go where they are empty, and then the record.
    Forget,
    /// This file was changed by somebody else: nothing may be written.
    Refuse(usize),
    /// Nothing.
    Done,
}

impl Journal {
    /// The path of every file, by its number.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &Word> {
        (0..self.files.len() + self.permissions.len()).map(|number| match self.files.get(number) {
            Some(file) => &file.path,
            None => &self.permissions[number - self.files.len()].path,
        })
    }

    /// The next step to `goal` (applied, or undoing), with what is found at each path. `kept` are files that stay as somebody else
    /// left them.
    pub fn next(&self, goal: State, found: &[FileVersion], kept: &[usize]) -> Step {
        let is_kept = |file: usize| kept.contains(&file);
        let of =
            |meant: FileVersion| found.iter().enumerate().filter(move |(_, one)| **one == meant).map(|(file, _)| file);
        if let Some(changed) = of(FileVersion::Other).find(|file| !is_kept(*file)) {
            return Step::Refuse(changed);
        }
        match (self.state, goal) {
            (State::Applying, State::Applied) => match of(FileVersion::Before).next() {
                Some(file) => Step::Apply(file),
                None => Step::Become(State::Applied),
            },
            (_, State::Applied | State::Applying) => Step::Done,
            (State::Undoing, State::Undoing) => match of(FileVersion::After).next_back() {
                Some(file) => Step::Restore(file),
                None => Step::Forget,
            },
            (_, State::Undoing) => Step::Become(State::Undoing),
        }
    }

    /// The files that somebody else changed.
    pub fn changed(&self, found: &[FileVersion]) -> Vec<usize> {
        found.iter().enumerate().filter(|(_, one)| **one == FileVersion::Other).map(|(file, _)| file).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(text: &str) -> FileContent {
        FileContent { content: text.into(), mode: 0o644, uid: 1, gid: 1, modified: None }
    }

    fn journal(files: usize) -> Journal {
        let change = |number: usize| FileChange {
            path: format!("/f{number}").as_str().into(),
            temporary: format!(".f{number}"),
            before: number.is_multiple_of(2).then(|| file("old")),
            after: file("new"),
        };
        Journal {
            schema: SCHEMA.to_owned(),
            state: State::Applying,
            directory: "/d".into(),
            fix: "f".to_owned(),
            target: "wrapper".to_owned(),
            made: Vec::new(),
            files: (0..files).map(change).collect(),
            permissions: Vec::new(),
        }
    }

    /// A machine that may be killed after any number of steps: what is kept on disk.
    struct Disk {
        journal: Option<Journal>,
        files: Vec<Option<FileContent>>,
    }

    impl Disk {
        fn new(files: usize) -> Self {
            let journal = journal(files);
            let files = journal.files.iter().map(|file| file.before.clone()).collect();
            Self { journal: Some(journal), files }
        }

        /// Makes at most `most` steps; whether it is done.
        fn go(&mut self, goal: State, most: usize) -> bool {
            for _ in 0..most {
                let Some(journal) = &mut self.journal else { return true };
                let found: Vec<FileVersion> =
                    journal.files.iter().zip(&self.files).map(|(change, there)| change.find(there.as_ref())).collect();
                match journal.next(goal, &found, &[]) {
                    Step::Apply(file) => self.files[file] = Some(journal.files[file].after.clone()),
                    Step::Restore(file) => self.files[file] = journal.files[file].before.clone(),
                    Step::Become(state) => journal.state = state,
                    Step::Forget => self.journal = None,
                    Step::Done => return true,
                    Step::Refuse(_) => panic!("nobody changed anything"),
                }
            }
            false
        }

        fn is_as_before(&self) -> bool {
            self.files.iter().enumerate().all(|(number, there)| *there == number.is_multiple_of(2).then(|| file("old")))
        }
    }

    proptest! {
        #[test]
        fn killed_after_any_step_every_file_is_whole_and_undo_restores_all(
            files in 1usize..4, first in 0usize..8, kills in prop::collection::vec(0usize..4, 0..4)
        ) {
            let mut disk = Disk::new(files);
            disk.go(State::Applied, first);
            for there in disk.files.iter().flatten() {
                prop_assert!(*there == file("old") || *there == file("new"));
            }
            for most in kills {
                disk.go(State::Undoing, most);
            }
            prop_assert!(disk.go(State::Undoing, 100));
            prop_assert!(disk.is_as_before() && disk.journal.is_none());
        }

        #[test]
        fn applying_ends_with_every_file_as_applied(files in 1usize..4) {
            let mut disk = Disk::new(files);
            prop_assert!(disk.go(State::Applied, 100));
            prop_assert!(disk.files.iter().all(|there| *there == Some(file("new"))));
            prop_assert_eq!(disk.journal.unwrap().state, State::Applied);
        }
    }

    #[test]
    fn a_file_that_somebody_changed_stops_everything_unless_it_is_kept() {
        let mut journal = journal(2);
        journal.state = State::Applied;
        let found = [FileVersion::After, FileVersion::Other];
        assert_eq!(journal.next(State::Undoing, &found, &[]), Step::Refuse(1));
        journal.state = State::Undoing;
        assert_eq!(journal.next(State::Undoing, &found, &[1]), Step::Restore(0));
        assert_eq!(journal.next(State::Undoing, &[FileVersion::Before, FileVersion::Other], &[1]), Step::Forget);
        assert_eq!(journal.changed(&found), [1]);
    }

    #[test]
    fn a_version_is_known_by_content_mode_and_owner_and_not_by_time() {
        let change = &journal(1).files[0];
        let later = FileContent { modified: Some((5, 0)), ..file("old") };
        assert_eq!(change.find(Some(&later)), FileVersion::Before);
        assert_eq!(change.find(Some(&file("new"))), FileVersion::After);
        assert_eq!(change.find(Some(&FileContent { mode: 0o600, ..file("new") })), FileVersion::Other);
        assert_eq!(change.find(None), FileVersion::Other);
    }

    #[test]
    fn files_are_written_first_to_last_and_restored_last_to_first() {
        let mut journal = journal(2);
        assert_eq!(journal.next(State::Applied, &[FileVersion::Before; 2], &[]), Step::Apply(0));
        assert_eq!(journal.next(State::Applied, &[FileVersion::After, FileVersion::Before], &[]), Step::Apply(1));
        journal.state = State::Undoing;
        assert_eq!(journal.next(State::Undoing, &[FileVersion::After; 2], &[]), Step::Restore(1));
    }
}
