//! Files and directories with other permissions than they have, as the mounts of a launch that sees them so.
//!
//! Owns what of a treatment is in a mount. `launch` makes the mounts on descriptors, of files that are still those that were looked at; who
//! may have which file tried, who proposes the treatment says.

use slowpath_fix::{FilePermissions, TreatedFile, Word};
use slowpath_launch::{LookedAt, MountStep, Permissions, SeenFile};
use slowpath_process::FileIdentity;
use std::path::PathBuf;

/// The mounts of a launch that sees the files so.
pub(super) fn mounts(files: &[TreatedFile], seen: impl Fn(&TreatedFile) -> &FilePermissions) -> Vec<MountStep> {
    mounts_of(files, |file| (file.uid, seen(file)))
}

/// The mounts of a launch that sees the files so, and as another user's.
pub(super) fn mounts_of(
    files: &[TreatedFile],
    seen: impl Fn(&TreatedFile) -> (u32, &FilePermissions),
) -> Vec<MountStep> {
    let step = |file: &TreatedFile| {
        let (uid, permissions) = seen(file);
        let (major, minor, inode) = file.identity;
        let identity = FileIdentity { major, minor, inode };
        MountStep::Seen(Box::new(SeenFile {
            path: PathBuf::from(file.path.to_os_string()),
            was: LookedAt { identity, uid: file.uid, gid: file.gid, mode: file.before.mode },
            permissions: Permissions {
                uid,
                gid: file.gid,
                mode: permissions.mode & 0o7777,
                acl: permissions.acl.clone(),
            },
            modified: None,
            without: Vec::new(),
            only: file.only.iter().map(Word::to_os_string).collect(),
        }))
    };
    files.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_sees_the_changed_bits_of_the_file_that_was_looked_at_and_no_kind_in_them() {
        let file = TreatedFile {
            path: "/a".into(),
            identity: (8, 1, 5),
            uid: 7,
            gid: 9,
            before: FilePermissions { mode: 0o100_600, acl: Some(vec![2]) },
            after: FilePermissions { mode: 0o100_604, acl: None },
            only: [Word::from("x")].into(),
        };
        let seen = |steps: Vec<MountStep>| match steps.as_slice() {
            [MountStep::Seen(seen)] => (**seen).clone(),
            other => panic!("{other:?}"),
        };
        let files = std::slice::from_ref(&file);
        let after = seen(mounts(files, |file| &file.after));
        assert_eq!((after.was.uid, after.was.gid, after.was.mode), (7, 9, 0o100_600));
        assert_eq!(after.was.identity, FileIdentity { major: 8, minor: 1, inode: 5 });
        assert_eq!(after.permissions, Permissions { uid: 7, gid: 9, mode: 0o604, acl: None });
        assert_eq!(after.only, ["x"]);
        let sham = seen(mounts(files, |file| &file.before));
        assert_eq!(sham.permissions, Permissions { uid: 7, gid: 9, mode: 0o600, acl: Some(vec![2]) });
        let own = seen(mounts_of(files, |file| (1000, &file.after)));
        assert_eq!((own.permissions.uid, own.was.uid), (1000, 7));
    }
}
