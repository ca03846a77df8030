//! Whether this machine and this user can have a lab, for `doctor` and for reports that must say what was not possible.

use crate::device::cached_pages;
use crate::image::find_mkfs;
use crate::throttle::Hierarchy;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// What is missing for labs; empty when they work. The throttle is listed too, though labs without one work.
pub fn missing() -> Vec<Unavailable> {
    let mut missing = Vec::new();
    if !nix::unistd::geteuid().is_root() {
        let reason = "mounting needs root".to_owned();
        missing.push(declared::LAB.because(reason, "run with sudo; the command itself still runs as you"));
    }
    if let Err(error) = find_mkfs() {
        missing.push(declared::LAB.because(error.to_string(), "install e2fsprogs"));
    }
    if !Path::new("/dev/loop-control").exists() {
        missing.push(
            declared::LAB
                .because("there is no /dev/loop-control", "load the loop module; containers need the host's devices"),
        );
    }
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    for name in ["ext4", "overlay"] {
        // Modules are loaded by the first mount.
        let loadable = Path::new("/proc/modules").exists();
        if !loadable && !known.split_ascii_whitespace().any(|word| word == name) {
            missing.push(declared::LAB.because(format!("this kernel has no {name}"), "use a kernel that has it"));
        }
    }
    if let Err(error) = File::open("/proc/self/exe").and_then(|file| cached_pages(&file)) {
        let remedy = of_refused_cachestat(error.kind(), nix::unistd::geteuid().is_root());
        missing.push(declared::COLDNESS_PROOF.because(format!("cachestat(2): {error}"), remedy));
    }
    if Hierarchy::find().is_none() {
        let reason = "neither cgroup v1 blkio nor cgroup v2 io is mounted".to_owned();
        missing.push(declared::THROTTLE.because(reason, "mount the controller"));
    }
    missing
}

/// What helps where cachestat(2) fails. It answers root, the owner of a file and who may write it (mm/filemap.c, `can_do_cachestat`).
fn of_refused_cachestat(error: io::ErrorKind, is_root: bool) -> &'static str {
    match (error, is_root) {
        (io::ErrorKind::PermissionDenied, false) => "run with sudo",
        (io::ErrorKind::PermissionDenied, true) => "allow cachestat(2) in the seccomp filter of this container",
        _ => "use Linux 6.5 or later",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_ask_for_cached_pages_is_not_asked_for_another_kernel() {
        let refused = |is_root| of_refused_cachestat(io::ErrorKind::PermissionDenied, is_root);
        assert_eq!(refused(false), "run with sudo");
        assert!(refused(true).contains("seccomp"));
        assert_eq!(of_refused_cachestat(io::ErrorKind::Unsupported, true), "use Linux 6.5 or later");
    }

    #[test]
    fn what_is_missing_agrees_with_whether_this_user_may_mount() {
        let needs_root = missing().iter().any(|lack| lack.reason.contains("root"));
        assert_eq!(needs_root, !nix::unistd::geteuid().is_root());
    }
}
