//! The process group of guardian and observer.

use nix::unistd::{Pid, setpgid};

/// A process group of its own, taken after the fork of the child that is to stay in the caller's: the launcher then
/// survives what kills the caller's whole group, and can clean up.
pub(super) fn leave() {
    let own = Pid::from_raw(0);
    // Fails for leaders of sessions only, which forked children are not.
    let _ = setpgid(own, own);
}
