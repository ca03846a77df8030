//! A file or directory as the launches of a trial see it: with other permissions.
//!
//! Owns looking at it again, so that what changes meanwhile is not tried, and what no trial can show. Leaves who denies to
//! [`crate::denied_files`], who may have it tried to [`crate::file_trial`], and the mounts to `verify`.

use slowpath_artifacts::access::{AclFact, Changed, Component};
use slowpath_artifacts::gather::Machine;
use slowpath_fix::{FilePermissions, NotTriable, TreatedFile};
use slowpath_launch::LookedAt;
use slowpath_process::MountPoint;
use std::collections::BTreeSet;
use std::fs::File;

/// Why something cannot be tried, and what else helps.
pub fn not_triable(reason: impl Into<String>, remedy: &str) -> NotTriable {
    NotTriable { reason: reason.into(), remedy: remedy.to_owned() }
}

/// A file with the change, and the bytes that a copy of it takes.
pub fn treated(machine: &Machine, mounts: &[MountPoint], file: &Changed) -> Result<(TreatedFile, u64), NotTriable> {
    let path = &file.before.path;
    let shown = path.display();
    let again = || not_triable(format!("{shown} changes while it is looked at"), "diagnose again");
    let open = machine.look_up(path).ok().and_then(|found| found.file).ok_or_else(again)?.1;
    let was = LookedAt::of(&open).map_err(|_| again())?;
    let is_same = was.mode & 0o7777 == file.before.mode && was.uid == file.before.uid && was.gid == file.before.gid;
    if !is_same {
        return Err(again());
    }
    if !was.is_directory() && !was.is_regular() {
        return Err(not_triable(format!("{shown} is neither a file nor a directory"), "change it by hand"));
    }
    if was.is_directory()
        && let Some(mount) = mounts.iter().find(|mount| mount.at.starts_with(path) && mount.at != *path)
    {
        let reason = format!("{} is mounted below {shown}, and a trial would hide it", mount.at.display());
        return Err(not_triable(reason, "make the change, and compare with `slowpath launch --user`"));
    }
    let size = if was.is_regular() { File::from(open).metadata().map_err(|_| again())?.len() } else { 0 };
    let permissions = |one: &Component| {
        let acl = match &one.acl {
            AclFact::None => None,
            AclFact::Entries(acl) => Some(acl.attribute()),
            AclFact::Unread(why) => {
                let reason = format!("the access control list of {shown} cannot be read: {why}");
                return Err(not_triable(reason, "make the change, and compare with `slowpath launch --user`"));
            }
        };
        Ok(FilePermissions { mode: was.mode & !0o7777 | one.mode, acl })
    };
    let identity = (was.identity.major, was.identity.minor, was.identity.inode);
    let treated = TreatedFile {
        path: path.as_os_str().into(),
        identity,
        uid: was.uid,
        gid: was.gid,
        before: permissions(&file.before)?,
        after: permissions(&file.after)?,
        only: BTreeSet::new(),
    };
    Ok((treated, size))
}
