//! In which directories a trial regenerates artifacts, and for whom.
//!
//! In launches of the trial the directories belong to the target's user, in mounts of its own. So it gets what only makes things worse for
//! itself: it may write there, and reads and lists nothing that it could not before. Who may write there outside needs no trial: it makes
//! the artifacts at each start, and something else makes them unfit.

use crate::file_trial::MOST_FILES;
use crate::treated_file::{not_triable, treated};
use slowpath_artifacts::access::{
    Access, AclFact, Changed, Component, Decision, FileKind, Identity, Lookup, LookupEnd, decide,
};
use slowpath_artifacts::gather::{LookupError, Machine};
use slowpath_fix::regenerate_artifact::Directories;
use slowpath_fix::{NotTriable, TreatedFile};
use slowpath_process::MountPoint;
use std::collections::BTreeSet;
use std::path::Path;

/// Permission bits of an owner: writing and searching, and reading.
const MAKES: u32 = 0o300;
const LISTS: u32 = 0o400;
/// Bits that stay: those of a directory whose new files get its group go.
const KEPT: u32 = 0o1777;

/// The directories in which these artifacts are made, as they are, and as they are seen where the user makes them; `None` where there is no
/// artifact.
pub fn directories(
    machine: &Machine,
    mounts: &[MountPoint],
    identity: &Identity,
    artifacts: &BTreeSet<&Path>,
) -> Option<Directories> {
    if artifacts.is_empty() {
        return None;
    }
    let all = artifacts.iter().map(|artifact| directory(machine, mounts, identity, artifact));
    Some(all.collect::<Result<Vec<TreatedFile>, NotTriable>>().and_then(|directories| {
        let directories = TreatedFile::merged([directories.as_slice()]);
        match directories.len() {
            few if few <= MOST_FILES => Ok(directories),
            many => Err(not_triable(format!("they lie in {many} directories, each of which is a mount"), BY_HAND)),
        }
    }))
}

const BY_HAND: &str = "make them by hand in a copy of the program, and compare with `slowpath launch --vs`";

fn directory(
    machine: &Machine,
    mounts: &[MountPoint],
    identity: &Identity,
    artifact: &Path,
) -> Result<TreatedFile, NotTriable> {
    let lookup = nearest(machine, artifact)?;
    let LookupEnd::File(as_is) = &lookup.end else {
        return Err(not_triable(
            format!("the directories above {} cannot be read", artifact.display()),
            "diagnose as root",
        ));
    };
    let after = own(identity, &lookup, as_is)?;
    Ok(treated(machine, mounts, &Changed { before: as_is.clone(), after })?.0)
}

/// The directory of an artifact, or the nearest above that is there.
fn nearest(machine: &Machine, artifact: &Path) -> Result<Lookup, NotTriable> {
    for above in artifact.ancestors().skip(1) {
        match machine.look_up(above) {
            Ok(found) => return Ok(found.lookup),
            Err(LookupError::Missing { .. }) => {}
            Err(error) => return Err(not_triable(error.to_string(), BY_HAND)),
        }
    }
    Err(not_triable(format!("{} is no absolute path", artifact.display()), BY_HAND))
}

/// The directory as the user's own.
fn own(identity: &Identity, lookup: &Lookup, directory: &Component) -> Result<Component, NotTriable> {
    let (shown, uid) = (directory.path.display(), identity.uid);
    let is_denied = |access| matches!(decide(identity, lookup, access), Decision::Denied(_));
    match () {
        () if directory.kind != FileKind::Directory || directory.path == Path::new("/") => {
            Err(not_triable(format!("no directory of its own is there for it, only {shown}"), BY_HAND))
        }
        () if is_denied(Access::Search) => Err(not_triable(
            format!("user {uid} may not search {shown}: what is made there it could not read"),
            "the fix grant_read of the same diagnosis, or another place for the artifacts",
        )),
        () if directory.mount.read_only || directory.mount.read_only_file_system => Err(not_triable(
            format!("{shown} is mounted read-only"),
            "make the artifacts where the image is built, and compare with `slowpath launch --vs`",
        )),
        () if decide(identity, lookup, Access::Write) == Decision::Allowed => Err(not_triable(
            format!("user {uid} may write {shown} and makes them at each start: something makes them unfit again"),
            "find who changes or removes them, or what they are made from",
        )),
        () => {
            let lists = if is_denied(Access::Read) { 0 } else { LISTS };
            let mode = directory.mode & KEPT & !LISTS | MAKES | lists;
            Ok(Component { mode, acl: AclFact::None, ..directory.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_artifacts::access::MountFacts;

    fn seen(uid: u32, mode: u32, mount: MountFacts) -> Result<u32, String> {
        let directory = Component {
            path: "/app/cache".into(),
            kind: FileKind::Directory,
            mode,
            uid,
            gid: 0,
            acl: AclFact::None,
            immutable: false,
            mount,
        };
        let lookup = Lookup { steps: Vec::new(), end: LookupEnd::File(directory.clone()), protected_symlinks: None };
        let identity = Identity::new(1000, 1000, vec![1000]);
        own(&identity, &lookup, &directory).map(|own| own.mode).map_err(|not| not.reason)
    }

    #[test]
    fn the_user_may_write_where_it_makes_artifacts_and_sees_no_more_than_before() {
        let plain = MountFacts::default;
        assert_eq!(seen(0, 0o755, plain()), Ok(0o755));
        assert_eq!(seen(0, 0o2555, plain()), Ok(0o755));
        assert_eq!(seen(0, 0o751, plain()), Ok(0o351), "it could not list it");
        assert!(seen(0, 0o700, plain()).unwrap_err().contains("may not search"));
        assert!(seen(1000, 0o755, plain()).unwrap_err().contains("at each start"));
        assert!(seen(0, 0o777, plain()).unwrap_err().contains("at each start"));
        let read_only = MountFacts { read_only: true, ..MountFacts::default() };
        assert!(seen(0, 0o755, read_only).unwrap_err().contains("read-only"));
    }
}
