//! Permissions of files that are there: the fix is the files' own new permissions, and no file is written.
//!
//! Owns which changes are carried out at all, and how they read as a diff. Leaves the files themselves to [`super::permission_place`].

use super::file_version::FileVersion;
use super::refusal::Refusal;
use super::target_kind::{Keeps, TargetKind};
use crate::treatment::{FilePermissions, TreatedFile};
use crate::word::Word;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// This kind.
pub static TARGET: TargetKind = TargetKind {
    name: "permissions",
    option: "--permissions",
    title: "the permissions of the files themselves",
    keeps: Keeps::Permissions,
};

/// The kind in a mode, and two of them (inode(7)).
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
/// What may be added, for owner, group or others: reading, and of a directory searching too.
const READ: u32 = 4;
const READ_AND_SEARCH: u32 = 5;
/// `struct posix_acl_xattr_header` and `struct posix_acl_xattr_entry` (include/uapi/linux/posix_acl_xattr.h).
const HEADER: usize = 4;
const ENTRY: usize = 8;

/// The permissions of one file, as they were and as they are with the fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionChange {
    /// Absolute path, without a symbolic link.
    pub path: Word,
    /// Which file it is: the device's major number, minor number, and the inode.
    pub identity: (u32, u32, u64),
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Before.
    pub before: FilePermissions,
    /// With the fix.
    pub after: FilePermissions,
}

impl PermissionChange {
    /// The change of one file of a fix, for whoever asks: `invoker`, root only where root asks for itself.
    ///
    /// # Errors
    /// It is not one that lets somebody read, or the file is not the invoker's to open for others.
    pub fn of(file: &TreatedFile, invoker: u32) -> Result<Self, Refusal> {
        let path = file.path.to_os_string();
        let path = path.to_string_lossy();
        let refused = |why: &str, remedy: &str| Err(Refusal::new(format!("{path} {why}"), remedy));
        if invoker != 0 && file.uid != invoker {
            let why = format!("belongs to user {}, and user {invoker} asks for it", file.uid);
            return refused(&why, "apply it as its owner, or from a root shell (for a diagnosis by root)");
        }
        let (before, after) = (&file.before, &file.after);
        if !matches!(before.mode & KIND, REGULAR | DIRECTORY) {
            return refused("is no file and no directory", "make the change by hand");
        }
        if before == after {
            return refused("is not changed by it", "diagnose again");
        }
        // One call to the kernel must do it, and one take it back: a file is never between the two.
        if before.acl.is_some() != after.acl.is_some() {
            return refused("would get its first access control list, or lose it", "make the change by hand");
        }
        let allowed = if before.mode & KIND == DIRECTORY { READ_AND_SEARCH } else { READ };
        let added = after.mode & !before.mode;
        let had = grants(before);
        let is_reading = |(whom, now): (&(u16, u32), &u32)| now & !had.get(whom).unwrap_or(&0) & !allowed == 0;
        let keeps_kind = (before.mode ^ after.mode) & !0o777 == 0;
        if !keeps_kind || added & !(allowed * 0o111) != 0 || !grants(after).iter().all(is_reading) {
            return refused("would get more than permission to read", "diagnose again");
        }
        Ok(Self {
            path: file.path.clone(),
            identity: file.identity,
            uid: file.uid,
            gid: file.gid,
            before: before.clone(),
            after: after.clone(),
        })
    }

    /// What a file is by this record; `None` where there is none.
    pub fn find(&self, there: Option<&Self>) -> FileVersion {
        let is_it = |there: &&Self| (there.identity, there.uid, there.gid) == (self.identity, self.uid, self.gid);
        match there.filter(is_it) {
            Some(there) if there.before == self.after => FileVersion::After,
            Some(there) if there.before == self.before => FileVersion::Before,
            _ => FileVersion::Other,
        }
    }
}

/// Permissions as lines, to be compared.
pub fn text(uid: u32, gid: u32, permissions: &FilePermissions) -> String {
    let mut text = format!("owner {uid}, group {gid}\nmode {:04o}\n", permissions.mode & 0o7777);
    for (tag, grants, id) in entries(permissions.acl.as_deref().unwrap_or_default()) {
        let whom = match tag {
            0x01 => "owner".to_owned(),
            0x02 => format!("user {id}"),
            0x04 => "group".to_owned(),
            0x08 => format!("group {id}"),
            0x10 => "mask".to_owned(),
            _ => "other".to_owned(),
        };
        let bit = |bit: u16, letter: char| if grants & bit != 0 { letter } else { '-' };
        let _ = writeln!(text, "acl {whom}: {}{}{}", bit(4, 'r'), bit(2, 'w'), bit(1, 'x'));
    }
    text
}

/// What each entry of a list grants, by its tag and id.
fn grants(permissions: &FilePermissions) -> BTreeMap<(u16, u32), u32> {
    let all = entries(permissions.acl.as_deref().unwrap_or_default());
    all.map(|(tag, grants, id)| ((tag, id), grants.into())).collect()
}

/// Tag, permissions and id of each entry of a list.
fn entries(acl: &[u8]) -> impl Iterator<Item = (u16, u16, u32)> + '_ {
    let entries = acl.get(HEADER..).unwrap_or_default().as_chunks::<ENTRY>().0;
    entries.iter().map(|[a, b, c, d, id @ ..]| {
        (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]), u32::from_le_bytes(*id))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn permissions(mode: u32, acl: Option<&[(u16, u16, u32)]>) -> FilePermissions {
        let bytes = |(tag, grants, id): &(u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &grants.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let acl = acl.map(|entries| {
            let entries = entries.iter().flat_map(bytes);
            2u32.to_le_bytes().into_iter().chain(entries).collect()
        });
        FilePermissions { mode, acl }
    }

    fn file(before: FilePermissions, after: FilePermissions) -> TreatedFile {
        TreatedFile {
            path: "/srv/a".into(),
            identity: (8, 1, 5),
            uid: 1000,
            gid: 1000,
            before,
            after,
            only: BTreeSet::new(),
        }
    }

    #[test]
    fn only_permission_to_read_is_given_and_only_by_who_may() {
        let of = |before: u32, after: u32, invoker: u32| {
            PermissionChange::of(&file(permissions(before, None), permissions(after, None)), invoker)
        };
        assert!(of(0o40700, 0o40701, 1000).is_ok() && of(0o100_600, 0o100_604, 0).is_ok());
        assert!(of(0o40700, 0o40701, 1001).unwrap_err().reason.contains("user 1001 asks"));
        for after in [0o100_602, 0o100_601, 0o104_604, 0o40604, 0o100_600] {
            assert!(of(0o100_600, after, 0).is_err(), "{after:o}");
        }
        // A bit that is taken away is no more than before.
        assert!(of(0o100_664, 0o100_644, 0).is_ok());
    }

    #[test]
    fn an_entry_of_a_list_may_let_read_and_not_write_and_a_first_list_is_refused() {
        let with = |grants: u16| permissions(0o100_640, Some(&[(1, 6, u32::MAX), (2, grants, 33), (16, 4, u32::MAX)]));
        assert!(PermissionChange::of(&file(with(0), with(4)), 0).is_ok());
        for more in [6, 5] {
            assert!(PermissionChange::of(&file(with(0), with(more)), 0).is_err(), "{more}");
        }
        let first = file(permissions(0o100_640, None), with(4));
        assert!(PermissionChange::of(&first, 0).unwrap_err().reason.contains("first access control list"));
        let expected = "owner 1, group 2\nmode 0640\nacl owner: rw-\nacl user 33: r--\nacl mask: r--\n";
        assert_eq!(text(1, 2, &with(4)), expected);
    }

    #[test]
    fn another_file_at_the_path_is_neither_before_nor_after() {
        let one = PermissionChange::of(&file(permissions(0o40700, None), permissions(0o40701, None)), 1000).unwrap();
        assert_eq!(one.find(Some(&one)), FileVersion::Before);
        assert_eq!(one.find(Some(&PermissionChange { before: one.after.clone(), ..one.clone() })), FileVersion::After);
        for other in [
            PermissionChange { identity: (8, 1, 6), ..one.clone() },
            PermissionChange { uid: 0, ..one.clone() },
            PermissionChange { before: permissions(0o40750, None), ..one.clone() },
        ] {
            assert_eq!(one.find(Some(&other)), FileVersion::Other);
        }
        assert_eq!(one.find(None), FileVersion::Other);
    }
}
