//! What a fix does to a launch: what a trial gives to its launches, and what is kept where the fix is applied. One value for
//! both, so that what is applied is what was tried.

use crate::word::Word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

/// What is done to a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Treatment {
    /// Nothing that slowpath can do by itself.
    #[default]
    None,
    /// Variables of its environment, instead of what it has under their names.
    Environment {
        /// Each with its whole value.
        variables: BTreeMap<String, Word>,
    },
    /// A preload plan is replayed beside it.
    PreloadPlan {
        /// Name of the plan's file in the directory of the diagnosis.
        file: String,
        /// SHA-256 of that file as it was written, in hexadecimal digits; `null` from an older slowpath.
        #[serde(default)]
        sha256: Option<String>,
    },
    /// Another setting of the device that holds the program's files.
    Readahead {
        /// How much is read at a demand, in KiB.
        kib: u64,
    },
    /// Permissions of files, which a launch sees in mounts of its own.
    Files {
        /// Each file once, directories before what lies below them.
        files: Vec<TreatedFile>,
    },
    /// Regenerated artifacts, which a launch sees where they belong, in mounts of its own.
    Regeneration {
        /// The directories in which they are made, each once, before those that lie below it.
        directories: Vec<TreatedFile>,
        /// What makes them, one after the other, before the program itself is launched once for what it still misses.
        commands: Vec<Vec<Word>>,
    },
    /// Modules that a process of Python imports before it forks the children that would all import them.
    PythonPreload {
        /// Whether multiprocessing executes the children; they come from its fork server then. Else they are forked already.
        spawned: bool,
        /// Their files, without what follows the name, in the order in which they are imported.
        modules: Vec<Word>,
    },
    /// A change of the program's source.
    Source {
        /// Where.
        place: String,
    },
}

/// A file or directory with other permissions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreatedFile {
    /// Its path, absolute and without a symbolic link.
    pub path: Word,
    /// Which file it was: the device's major number, minor number, and the inode.
    pub identity: (u32, u32, u64),
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// As it was when the fix was made.
    pub before: FilePermissions,
    /// With the fix.
    pub after: FilePermissions,
    /// Of a directory whose owner may not want more to be seen: the only names that launches of a trial find in it. Empty: all are there.
    #[serde(default)]
    pub only: BTreeSet<Word>,
}

/// Who may use a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilePermissions {
    /// Kind and permission bits (`st_mode`).
    pub mode: u32,
    /// The access control list as the kernel stores it (`system.posix_acl_access`); `null` where there is none.
    pub acl: Option<Vec<u8>>,
}

impl TreatedFile {
    /// Files of several lists, each once with all changes, directories before what lies below them.
    pub fn merged<'a>(lists: impl IntoIterator<Item = &'a [Self]>) -> Vec<Self> {
        let mut by_path: BTreeMap<PathBuf, Self> = BTreeMap::new();
        for file in lists.into_iter().flatten() {
            let path = PathBuf::from(file.path.to_os_string());
            match by_path.get_mut(&path) {
                // One artifact below a directory may need to search it, and another to list it.
                Some(known) => {
                    known.after.mode |= file.after.mode;
                    known.only.extend(file.only.iter().cloned());
                    if file.after.acl.is_some() {
                        known.after.acl.clone_from(&file.after.acl);
                    }
                }
                None => {
                    by_path.insert(path, file.clone());
                }
            }
        }
        by_path.into_values().collect()
    }
}

impl Treatment {
    /// One variable.
    pub fn variable(name: &str, value: impl Into<OsString>) -> Self {
        let value = Word::from(value.into().as_os_str());
        Self::Environment { variables: BTreeMap::from([(name.to_owned(), value)]) }
    }

    /// Variables of a treated launch; none where it is treated otherwise.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        match self {
            Self::Environment { variables } => {
                variables.iter().map(|(name, value)| (name.into(), value.to_os_string())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Directories in which artifacts are regenerated for a treated launch; none where it is treated otherwise.
    pub fn regenerated(&self) -> &[TreatedFile] {
        match self {
            Self::Regeneration { directories, .. } => directories,
            _ => &[],
        }
    }

    /// Files that a treated launch sees with other permissions; none where it is treated otherwise.
    pub fn files(&self) -> &[TreatedFile] {
        match self {
            Self::Files { files } => files,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_two_treatments_has_both_changes_and_directories_come_first() {
        let file = |path: &str, mode: u32| TreatedFile {
            path: path.into(),
            identity: (8, 1, 5),
            uid: 0,
            gid: 0,
            before: FilePermissions { mode: 0o40700, acl: None },
            after: FilePermissions { mode, acl: None },
            only: ["x"].map(Word::from).into(),
        };
        let (one, other) = ([file("/a/b/c", 0o100_604), file("/a/b", 0o40701)], [file("/a/b", 0o40704)]);
        let all = TreatedFile::merged([&one[..], &other[..]]);
        let modes: Vec<_> = all.iter().map(|file| (file.path.clone(), file.after.mode)).collect();
        assert_eq!(modes, [("/a/b".into(), 0o40705), ("/a/b/c".into(), 0o100_604)]);
    }
}
