//! What decides about access to one file: the facts that the kernel looks at, as they were read here or elsewhere.

use super::acl::Acl;
use std::path::PathBuf;

/// What kind of file it is (inode(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO, socket or device.
    Special,
}

/// The access control list of a file, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AclFact {
    /// It has none, or its file system has none.
    None,
    /// These entries.
    Entries(Acl),
    /// It has one that could not be read: why.
    Unread(String),
}

/// What the mount of a file adds (mount(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountFacts {
    /// The mount is read-only, which the kernel looks at last.
    pub read_only: bool,
    /// The file system is read-only, which it looks at first.
    pub read_only_file_system: bool,
    /// No file there can be executed.
    pub no_exec: bool,
    /// No symbolic link there is followed.
    pub no_symlink_follow: bool,
    /// A server answers for its files, or never does.
    pub asks_server: bool,
    /// Why mode bits and lists do not decide there: a server does, or the mount maps ids.
    pub undecidable: Option<String>,
}

/// One file on the way, or the file itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Its path without symbolic links.
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// Permission bits, set-id and sticky bits included (`07777`).
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its access control list.
    pub acl: AclFact,
    /// Nobody may change it (`FS_IMMUTABLE_FL`, ioctl_iflags(2)).
    pub immutable: bool,
    /// What its mount adds.
    pub mount: MountFacts,
}

/// One step of a lookup, in the kernel's order (path_resolution(7)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A name is looked up in this directory.
    Search(Component),
    /// This symbolic link is followed.
    Follow {
        /// The link.
        link: Component,
        /// The directory that holds it.
        directory: Component,
        /// Whether nothing comes behind it: such a link in a sticky directory that everybody can write may be refused.
        is_last: bool,
    },
}

/// A path, looked up as far as the reader could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// What the lookup goes through.
    pub steps: Vec<Step>,
    /// What it leads to.
    pub end: LookupEnd,
    /// `fs.protected_symlinks` (Documentation/admin-guide/sysctl/fs.rst); `None` where it is not known.
    pub protected_symlinks: Option<bool>,
}

/// Where a lookup ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupEnd {
    /// At the file.
    File(Component),
    /// The reader could not look further: why.
    Blocked(String),
}

impl Lookup {
    /// The same lookup, one name further: `file` lies in the directory that this one leads to.
    #[must_use]
    pub fn below(&self, file: Component) -> Self {
        let mut steps = self.steps.clone();
        match &self.end {
            LookupEnd::File(directory) => steps.push(Step::Search(directory.clone())),
            LookupEnd::Blocked(_) => return self.clone(),
        }
        Self { steps, end: LookupEnd::File(file), protected_symlinks: self.protected_symlinks }
    }
}
