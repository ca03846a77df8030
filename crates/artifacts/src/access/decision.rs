//! What the evaluator says: allowed, denied by which rule of which file, or unknown and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is asked of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reading a file, listing a directory.
    Read,
    /// Writing a file, making and removing names in a directory.
    Write,
    /// Executing a file.
    Execute,
    /// Looking up a name in a directory.
    Search,
    /// Following a symbolic link.
    Follow,
}

impl Access {
    /// The permission bit: `MAY_READ`, `MAY_WRITE` or `MAY_EXEC` (include/linux/fs.h). Links have none.
    pub fn bit(self) -> u8 {
        match self {
            Self::Read => 4,
            Self::Write => 2,
            Self::Execute | Self::Search => 1,
            Self::Follow => 0,
        }
    }

    /// The letter of chmod(1) and setfacl(1).
    pub fn letter(self) -> &'static str {
        match self {
            Self::Read => "r",
            Self::Write => "w",
            Self::Execute | Self::Search => "x",
            Self::Follow => "",
        }
    }
}

/// Which rule denied. Ids and permissions stand in the file's facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The identity owns the file, and the owner's bits lack the permission.
    OwnerBits,
    /// The identity is in the file's group, and the group's bits lack the permission.
    GroupBits,
    /// The identity is neither, and the bits for others lack the permission.
    OtherBits,
    /// The list's entry for this user lacks the permission.
    AclUser,
    /// The identity is in groups that the list names, or in the owning one, and no entry of these has the permission.
    AclGroup,
    /// An entry grants the permission, and the mask takes it away.
    AclMask,
    /// The list's entry for all others lacks the permission.
    AclOther,
    /// The mount or its file system is read-only.
    ReadOnlyMount,
    /// The mount has the option `noexec`.
    NoExecMount,
    /// The mount has the option `nosymfollow`.
    NoSymlinkFollowMount,
    /// The file is immutable.
    Immutable,
    /// The link lies in a sticky directory that everybody can write, and belongs neither to the identity nor to the directory's owner.
    ProtectedSymlink,
}

impl Rule {
    /// The rule in words; `letter` is the missing permission.
    pub fn words(self, access: Access) -> String {
        let letter = access.letter();
        match self {
            Self::OwnerBits => format!("owner bits lack {letter}"),
            Self::GroupBits => format!("group bits lack {letter}"),
            Self::OtherBits => format!("other bits lack {letter}"),
            Self::AclUser => format!("ACL entry of the user lacks {letter}"),
            Self::AclGroup => format!("no ACL entry of a group of the user has {letter}"),
            Self::AclMask => format!("ACL mask lacks {letter}"),
            Self::AclOther => format!("ACL entry for others lacks {letter}"),
            Self::ReadOnlyMount => "mount is read-only".to_owned(),
            Self::NoExecMount => "mount is noexec".to_owned(),
            Self::NoSymlinkFollowMount => "mount is nosymfollow".to_owned(),
            Self::Immutable => "file is immutable".to_owned(),
            Self::ProtectedSymlink => "fs.protected_symlinks".to_owned(),
        }
    }
}

/// The first rule that denies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The file whose rule it is: a directory on the way, a link, or the file itself.
    pub path: PathBuf,
    /// What was asked of it.
    pub access: Access,
    /// The rule.
    pub rule: Rule,
}

/// What the kernel would say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It grants the access.
    Allowed,
    /// It refuses.
    Denied(Denial),
    /// It cannot be said from the facts.
    Unknown {
        /// What is missing.
        why: String,
    },
}
