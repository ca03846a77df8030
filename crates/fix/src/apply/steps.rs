//! Carries out what the record of a change says, file by file, and looks at all of them before each step.

use super::error::ApplyError;
use super::file_version::FileVersion;
use super::journal::{FileChange, Journal, State, Step};
use super::permission_place;
use super::permissions::PermissionChange;
use super::place::{self, FilePlace, There, path_of};
use super::records::{Record, Records};
use std::io;

/// What is found at the path of each file.
pub fn found(journal: &Journal) -> Result<Vec<FileVersion>, ApplyError> {
    journal.files.iter().map(look).chain(journal.permissions.iter().map(permission_place::look)).collect()
}

fn look(file: &FileChange) -> Result<FileVersion, ApplyError> {
    let path = path_of(&file.path);
    match FilePlace::open(&path).and_then(|place| place.look()) {
        Ok(There::Else(_)) => Ok(FileVersion::Other),
        Ok(there) => Ok(file.find(there.file())),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(file.find(None))
        }
        Err(error) => Err(ApplyError::unusable(path, error)),
    }
}

/// Applies what a record describes. A step that fails has everything restored.
///
/// # Errors
/// A file cannot be written, or somebody changed it since it was looked at.
pub fn apply(records: &Records, record: &mut Record) -> Result<(), ApplyError> {
    let applied = go(records, record, State::Applied, &[]);
    applied.map_err(|error| ApplyError::NotApplied {
        error: Box::new(error),
        is_restored: go(records, record, State::Undoing, &[]).is_ok(),
    })
}

/// Restores every file of a record but those in `kept`, and forgets it.
///
/// # Errors
/// A file cannot be written, or somebody changed it.
pub fn undo(records: &Records, record: &mut Record, kept: &[usize]) -> Result<(), ApplyError> {
    go(records, record, State::Undoing, kept)
}

fn go(records: &Records, record: &mut Record, goal: State, kept: &[usize]) -> Result<(), ApplyError> {
    // One step for each file and two for the state; more would be somebody who changes the files back at the same time.
    let most = record.journal.paths().len() * 2 + 4;
    for _ in 0..most {
        let found = found(&record.journal)?;
        match record.journal.next(goal, &found, kept) {
            Step::Apply(file) => {
                if file == 0 {
                    for path in &record.journal.made {
                        place::make_directory(&path_of(path), 0o755)?;
                    }
                }
                match change(&record.journal, file) {
                    Change::File(file) => open(file)?.replace(&file.temporary, &file.after, file.before.as_ref())?,
                    Change::Permissions(change) => permission_place::apply(change)?,
                }
            }
            Step::Restore(file) => match change(&record.journal, file) {
                Change::File(file) => match &file.before {
                    Some(before) => open(file)?.replace(&file.temporary, before, Some(&file.after))?,
                    None => open(file)?.remove(&file.after)?,
                },
                Change::Permissions(change) => permission_place::restore(change)?,
            },
            Step::Become(state) => {
                record.journal.state = state;
                records.write(record)?;
            }
            Step::Forget => {
                clean(&record.journal);
                return records.remove(record);
            }
            Step::Refuse(file) => return Err(changed(&record.journal, file)),
            Step::Done => return Ok(()),
        }
    }
    Err(ApplyError::Restless { fix: record.journal.fix.clone() })
}

/// What changes, by its number.
enum Change<'a> {
    File(&'a FileChange),
    Permissions(&'a PermissionChange),
}

fn change(journal: &Journal, number: usize) -> Change<'_> {
    match journal.files.get(number) {
        Some(file) => Change::File(file),
        None => Change::Permissions(&journal.permissions[number - journal.files.len()]),
    }
}

fn open(file: &FileChange) -> Result<FilePlace, ApplyError> {
    let path = path_of(&file.path);
    FilePlace::open(&path).map_err(|error| ApplyError::unusable(path, error))
}

/// What a killed slowpath left beside the files, and directories that were made for them.
fn clean(journal: &Journal) {
    for file in &journal.files {
        if let Ok(place) = open(file) {
            place.remove_temporary(&file.temporary);
        }
    }
    for path in journal.made.iter().rev() {
        place::remove_directory(&path_of(path));
    }
}

fn changed(journal: &Journal, file: usize) -> ApplyError {
    let path = journal.paths().nth(file).map(path_of).unwrap_or_default();
    ApplyError::Changed { path, fix: journal.fix.clone() }
}
