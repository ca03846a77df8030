//! What is said where a fix could not be applied or undone, and what the user can do about it.

use nix::unistd::geteuid;
use slowpath_fix::apply::error::ApplyError;
use slowpath_session::failure::{Failure, Kind};
use std::io;
use std::path::Path;

/// The failure of applying or undoing.
pub fn failure(error: ApplyError) -> Failure {
    let message = error.to_string();
    match error {
        ApplyError::Unusable { path, error } => unusable(&path, &error),
        ApplyError::NotPlain(_) => Failure::new(Kind::Usage, message).hint("give a path without `..`"),
        ApplyError::NoHome => Failure::new(Kind::Usage, message).hint("set HOME"),
        ApplyError::Busy => Failure::new(Kind::Machine, message).hint("run it again later"),
        ApplyError::Damaged { .. } => Failure::new(Kind::Usage, message).hint(
            "a later slowpath wrote it, or it is damaged: undo with that slowpath, or restore its files by hand and remove it",
        ),
        ApplyError::DamagedList { .. } => {
            Failure::new(Kind::Usage, message).hint("diagnose again with sudo, which begins a new list")
        }
        ApplyError::Restless { .. } => {
            Failure::new(Kind::Machine, message).hint("end what writes them, then run it again")
        }
        ApplyError::Changed { .. } => Failure::new(Kind::Check, message).hint(
            "undo what changed it (another fix, by its name), or put the file back; `--keep-changed` leaves it as it is and restores \
             the others",
        ),
        ApplyError::NotApplied { error, is_restored: true } => failure(*error).hint("nothing was changed"),
        ApplyError::NotApplied { error, is_restored: false } => {
            failure(*error).hint("`slowpath fix undo` restores what was changed until then")
        }
    }
}

/// What is said of a path that cannot be used.
pub fn unusable(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(Kind::Usage, format!("{} cannot be used: {error}", path.display()));
    if error.raw_os_error() == Some(libc::ELOOP) {
        let hint = "the path goes through a symbolic link, which is not followed here: give the path that it leads to";
        // Root would follow what another user can change, and say what lies where they may not look.
        return failure.hint(match std::fs::canonicalize(path) {
            Ok(leads) if !geteuid().is_root() => format!("{hint} ({})", leads.display()),
            _ => hint.to_owned(),
        });
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied if geteuid().is_root() => {
            failure.hint("as root, slowpath writes only where nobody else can replace a part of the path; without root it writes where you may")
        }
        io::ErrorKind::PermissionDenied => failure.hint("name a path that you may write, or run it with sudo"),
        _ => failure.hint("name a path in a directory that is there"),
    }
}
