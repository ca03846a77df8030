//! Trying a change of permissions: who may have it tried, and what the launches of the trial see.
//!
//! A trial gives the target what it was denied, for the time of a launch. So the rule is not what root can do, but what whoever asked
//! could do (docs/security.md): who owns a file, and who is it that asks, decides.

use slowpath_artifacts::access::{Changed, Component, FileKind};
use slowpath_artifacts::families::{is_artifact, owns_directory};
use slowpath_fix::{FilePermissions, NotTriable, TreatedFile, Word};
use slowpath_launch::{LookedAt, MountStep, Permissions, SeenFile};
use slowpath_process::FileIdentity;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files of one trial at most: each is a mount in every launch of it.
pub const MOST_FILES: usize = 512;

/// Who is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Parties {
    /// Who asked for the diagnosis: root only where root did so for itself.
    pub invoker: u32,
    /// Who is denied.
    pub target: u32,
}

/// Why these parties get no trial in which `target` may read `artifact` by `changed`. `is_public` is whether the artifact's own permissions
/// let everybody read it, so that only directories deny.
pub fn refusal(parties: Parties, artifact: &Path, is_public: bool, changed: &[Changed]) -> Option<NotTriable> {
    let is_allowed = |file: &Changed| {
        let owner = file.before.uid;
        // Could do it themselves.
        owner == parties.target
            || owner == parties.invoker && parties.invoker != 0
            || is_artifact(artifact) && (parties.invoker == 0 || opens_no_secret(file, is_public))
    };
    let refused = changed.iter().find(|file| !is_allowed(file))?;
    let (path, owner, target) = (refused.before.path.display(), refused.before.uid, parties.target);
    let whose = format!("{path} belongs to user {owner}, and a trial would let user {target} read what it protects");
    Some(if is_artifact(artifact) {
        NotTriable {
            reason: format!("{whose}; user {} asked for it", parties.invoker),
            remedy: "diagnose from a root shell, or as the owner of the file".to_owned(),
        }
    } else {
        NotTriable {
            reason: format!("{whose}; {} is of no family of artifacts that slowpath knows", artifact.display()),
            remedy: "make the change, if it is one to make, and compare with `slowpath launch --user`".to_owned(),
        }
    })
}

/// Whether of this directory the target is to see no more than the way to the artifacts: it is somebody else's, and holds other files.
pub fn hides_others(parties: Parties, directory: &Component) -> bool {
    directory.kind == FileKind::Directory && directory.uid != parties.target && !owns_directory(&directory.path)
}

/// Whether it is a directory that holds artifacts only, and everybody may read this one.
fn opens_no_secret(file: &Changed, is_public: bool) -> bool {
    is_public && file.before.kind == FileKind::Directory && owns_directory(&file.before.path)
}

/// Files of several treatments, each once, directories before what lies below them.
pub fn merged<'a>(treatments: impl Iterator<Item = &'a [TreatedFile]>) -> Vec<TreatedFile> {
    let mut by_path: BTreeMap<PathBuf, TreatedFile> = BTreeMap::new();
    for file in treatments.flatten() {
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

/// The mounts of a launch that sees the files so.
pub fn mounts(files: &[TreatedFile], seen: impl Fn(&TreatedFile) -> &FilePermissions) -> Vec<MountStep> {
    mounts_of(files, |file| (file.uid, seen(file)))
}

/// The mounts of a launch that sees the files so, and as another user's.
pub fn mounts_of(files: &[TreatedFile], seen: impl Fn(&TreatedFile) -> (u32, &FilePermissions)) -> Vec<MountStep> {
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
    use slowpath_artifacts::access::{AclFact, MountFacts};

    fn changed(path: &str, kind: FileKind, uid: u32) -> Changed {
        let before = Component {
            path: path.into(),
            kind,
            mode: 0o700,
            uid,
            gid: uid,
            acl: AclFact::None,
            immutable: false,
            mount: MountFacts::default(),
        };
        let after = Component { mode: 0o705, ..before.clone() };
        Changed { before, after }
    }

    const PYC: &str = "/srv/app/__pycache__/m.cpython-311.pyc";

    fn is_refused(invoker: u32, artifact: &str, is_public: bool, files: &[Changed]) -> bool {
        refusal(Parties { invoker, target: 1000 }, Path::new(artifact), is_public, files).is_some()
    }

    #[test]
    fn who_owns_what_denies_may_have_it_tried_and_root_only_for_artifacts() {
        let of = |uid| [changed(PYC, FileKind::Regular, uid)];
        // Of the target itself, of the invoker, and of root for root.
        for (invoker, owner) in [(1001, 1000), (1001, 1001), (0, 0), (0, 33)] {
            assert!(!is_refused(invoker, PYC, false, &of(owner)), "{invoker} {owner}");
        }
        // Through sudo, what is root's or another user's stays that.
        for owner in [0, 33] {
            assert!(is_refused(1000, PYC, false, &of(owner)), "{owner}");
        }
        let shadow = [changed("/etc/shadow", FileKind::Regular, 0)];
        assert!(is_refused(0, "/etc/shadow", false, &shadow) && is_refused(1000, "/etc/shadow", false, &shadow));
    }

    #[test]
    fn a_directory_is_opened_through_sudo_only_where_all_in_it_are_artifacts_and_this_one_is_public() {
        let directory = |path: &str| [changed(path, FileKind::Directory, 0)];
        assert!(!is_refused(1000, PYC, true, &directory("/srv/app/__pycache__")));
        assert!(is_refused(1000, PYC, false, &directory("/srv/app/__pycache__")));
        assert!(is_refused(1000, PYC, true, &directory("/srv/app")));
        assert!(!is_refused(0, PYC, true, &directory("/srv/app")));
        // Each file that denies counts.
        let [open, closed] = [directory("/srv/app/__pycache__"), directory("/srv")].map(|[one]| one);
        assert!(is_refused(1000, PYC, true, &[open, closed]));
    }

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
        let all = merged([&one[..], &other[..]].into_iter());
        let modes: Vec<_> = all.iter().map(|file| (file.path.clone(), file.after.mode)).collect();
        assert_eq!(modes, [("/a/b".into(), 0o40705), ("/a/b/c".into(), 0o100_604)]);
    }
}
