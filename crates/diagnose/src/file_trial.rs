//! Trying a change of permissions: who may have it tried.
//!
//! A trial gives the target what it was denied, for the time of a launch. So the rule is not what root can do, but what whoever asked
//! could do (docs/security.md): who owns a file, and who is it that asks, decides. Leaves to `verify` how the launches of a
//! trial see the file.

use slowpath_artifacts::access::{Access, Changed, Component, Decision, FileKind, Identity, Lookup, LookupEnd, decide};
use slowpath_artifacts::families::{is_artifact, owns_directory};
use slowpath_fix::NotTriable;

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

/// A file that is denied, as a trial would give it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The file, by its path without symbolic links.
    pub file: &'a Component,
    /// The directories that lead to it.
    pub directories: &'a [Component],
    /// What would be seen with other permissions.
    pub changed: &'a [Changed],
}

/// Why these parties get no trial in which the target, who is `identity` to the kernel, may read what is asked for.
pub fn refusal(parties: Parties, identity: &Identity, asked: Asked<'_>) -> Option<NotTriable> {
    let artifact = asked.file.path.as_path();
    let is_public = asked.file.mode & 0o004 != 0;
    let forger = forger(identity, asked).filter(|_| asked.file.uid != parties.target);
    let may_ask =
        |file: &Changed| parties.invoker == 0 || file.before.uid == parties.invoker || opens_no_secret(file, is_public);
    // What is the target's own it could open itself.
    let is_allowed = |file: &Changed| {
        file.before.uid == parties.target || is_artifact(artifact) && forger.is_none() && may_ask(file)
    };
    let refused = asked.changed.iter().find(|file| !is_allowed(file))?;
    let (path, owner, target) = (refused.before.path.display(), refused.before.uid, parties.target);
    let whose = format!("{path} belongs to user {owner}, and a trial would let user {target} read what it protects");
    let by_hand = |why: String| NotTriable {
        reason: format!("{whose}; {why}"),
        remedy: "make the change, if it is one to make, and compare with `slowpath launch --user`".to_owned(),
    };
    Some(match forger {
        _ if !is_artifact(artifact) => {
            by_hand(format!("{} is of no family of artifacts that slowpath knows", artifact.display()))
        }
        Some(directory) => by_hand(format!(
            "its name is no sign of what it is, as others than its owner can rename files in {}",
            directory.path.display()
        )),
        None => NotTriable {
            reason: format!("{whose}; user {} asked for it", parties.invoker),
            remedy: "diagnose from a root shell, or as the owner of the file".to_owned(),
        },
    })
}

/// The directory in which somebody other than root and the owner of a file could have given it the name by which it is known as an
/// artifact. Where any name would do, as in a directory of a cache, that can be each that leads to it.
fn forger<'a>(target: &Identity, asked: Asked<'a>) -> Option<&'a Component> {
    let path = &asked.file.path;
    let any_name = is_artifact(&path.with_file_name("any"));
    asked.directories.iter().find(|directory| {
        let holds = path.parent() == Some(&directory.path);
        (holds || any_name) && lets_name(target, directory, asked.file.uid, holds)
    })
}

/// Whether somebody other than root and the owner can have made a name in this directory. In a sticky one anybody can, also for another
/// user's file (of a directory where they may rename it). A directory is moved only by who may write in it, so above that the sticky bit is enough.
fn lets_name(target: &Identity, directory: &Component, owner: u32, holds_it: bool) -> bool {
    let alone = Lookup { steps: Vec::new(), end: LookupEnd::File(directory.clone()), protected_symlinks: None };
    let keeps = directory.mode & 0o1000 != 0 && !holds_it;
    let is_open = directory.mode & 0o002 != 0 || !matches!(decide(target, &alone, Access::Write), Decision::Denied(_));
    directory.uid != 0 && directory.uid != owner || is_open && !keeps
}

/// Whether of this directory the target is to see no more than the way to the artifacts: it is somebody else's, and holds other files.
pub fn hides_others(parties: Parties, directory: &Component) -> bool {
    directory.kind == FileKind::Directory && directory.uid != parties.target && !owns_directory(&directory.path)
}

/// Whether it is a directory that holds artifacts only, and everybody may read this one.
fn opens_no_secret(file: &Changed, is_public: bool) -> bool {
    is_public && file.before.kind == FileKind::Directory && owns_directory(&file.before.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_artifacts::access::{AclFact, MountFacts};
    use std::path::Path;

    fn changed(path: &str, kind: FileKind, uid: u32) -> Changed {
        let before = component(path, kind, uid, 0o700);
        let after = Component { mode: 0o705, ..before.clone() };
        Changed { before, after }
    }

    const PYC: &str = "/srv/app/__pycache__/m.cpython-311.pyc";

    fn component(path: &str, kind: FileKind, uid: u32, mode: u32) -> Component {
        let mount = MountFacts::default();
        Component { path: path.into(), kind, mode, uid, gid: uid, acl: AclFact::None, immutable: false, mount }
    }

    /// Of a file with these permissions for others, in a directory of root's.
    fn is_refused(invoker: u32, artifact: &str, is_public: bool, files: &[Changed]) -> bool {
        let file = component(artifact, FileKind::Regular, 0, if is_public { 0o604 } else { 0o600 });
        refused_in(invoker, &file, &component("/srv", FileKind::Directory, 0, 0o755), files)
    }

    fn refused_in(invoker: u32, file: &Component, directory: &Component, changed: &[Changed]) -> bool {
        let target = Identity::new(1000, 1000, vec![50]);
        let asked = Asked { file, directories: std::slice::from_ref(directory), changed };
        refusal(Parties { invoker, target: 1000 }, &target, asked).is_some()
    }

    #[test]
    fn who_owns_what_denies_may_have_it_tried_and_others_only_for_artifacts() {
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
        // What is private to who called sudo is so to a target of another user, too.
        let key = [changed("/home/alice/.ssh/id", FileKind::Regular, 1001)];
        assert!(is_refused(1001, "/home/alice/.ssh/id", false, &key));
    }

    #[test]
    fn the_name_of_an_artifact_counts_only_where_its_owner_gave_it() {
        let directory = |uid, mode| component("/srv/app/__pycache__", FileKind::Directory, uid, mode);
        let refused = |owner: u32, directory: Component| {
            let file = component(PYC, FileKind::Regular, owner, 0o600);
            refused_in(0, &file, &directory, &[changed(PYC, FileKind::Regular, owner)])
        };
        for (owner, of, mode) in [(0, 0, 0o755), (33, 33, 0o700), (33, 0, 0o755)] {
            assert!(!refused(owner, directory(of, mode)), "{owner} {of} {mode:o}");
        }
        // The target's directory, another user's, those that everybody can write, one that a group of the target's can.
        let shared = Component { gid: 50, ..directory(0, 0o775) };
        let open = [directory(0, 0o777), directory(0, 0o1777), shared];
        for directory in [directory(1000, 0o755), directory(33, 0o755)].into_iter().chain(open) {
            assert!(refused(0, directory.clone()), "{directory:?}");
        }
        // Of a file of its own, the target may give away the name.
        assert!(!refused(1000, directory(1000, 0o755)));
    }

    #[test]
    fn directories_above_count_where_any_name_of_a_file_would_do() {
        let refused = |path: &str, uid: u32, mode: u32| {
            let (file, above) = (component(path, FileKind::Regular, 0, 0o600), Path::new(path).parent().unwrap());
            let holds = component(above.to_str().unwrap(), FileKind::Directory, 0, 0o755);
            let top = component("/srv/app", FileKind::Directory, uid, mode);
            let changed = [changed(path, FileKind::Regular, 0)];
            let target = Identity::new(1000, 1000, vec![50]);
            let asked = Asked { file: &file, directories: &[top, holds], changed: &changed };
            refusal(Parties { invoker: 0, target: 1000 }, &target, asked).is_some()
        };
        // Bytecode of root's in a directory that the target can call anything; and whatever lies in a directory called so.
        let cache = "/srv/app/Code Cache/js/0123";
        assert!(is_artifact(Path::new(cache)));
        assert!(!refused(PYC, 1000, 0o755) && refused(cache, 1000, 0o755));
        assert!(!refused(cache, 0, 0o1777) && refused(cache, 0, 0o777));
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
}
