//! Names that are no UTF-8, of processes and of mount points: what concerns them is recorded like everything else. Needs root; skips
//! with a reason otherwise.

use crate::targets::root;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, execv, fork, pipe, read, write};
use slowpath_capture::{Options, Recorder, Running, decode};
use slowpath_process::Owner;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_mount_point_that_is_no_utf_8_hides_no_other() {
    if !root() {
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let (data, point) = (directory.path().join("data"), directory.path().join(OsStr::from_bytes(b"odd-\xff\xfe")));
    std::fs::write(&data, vec![7u8; 4096]).unwrap();
    std::fs::create_dir(&point).unwrap();
    let arguments = ["/usr/bin/md5sum", data.to_str().unwrap()].map(|text| CString::new(text).unwrap());
    let ((ready, ready_writer), (gate, opener)) = (pipe().unwrap(), pipe().unwrap());
    let mut recorder = Recorder::load(Options::default()).unwrap();
    // SAFETY: the child calls system calls only, executes a program, and ends without a destructor.
    let child = match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let none = None::<&str>;
            let is_mounted = unshare(CloneFlags::CLONE_NEWNS)
                .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))
                .and_then(|()| mount(Some("none"), &point, Some("tmpfs"), MsFlags::empty(), none))
                .is_ok();
            let _ = write(&ready_writer, &[u8::from(is_mounted)]);
            let _ = read(&gate, &mut [0]);
            let _ = execv(&arguments[0], &arguments);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(127) }
        }
    };
    let mut byte = [0];
    read(&ready, &mut byte).unwrap();
    assert_eq!(byte, [1], "nothing could be mounted");
    recorder.attach_tree(child.as_raw()).unwrap();
    write(&opener, b"x").unwrap();
    waitpid(child, None).unwrap();
    let raw = recorder.finish().unwrap();
    assert!(raw.facts.mounts.iter().any(|mount| mount.mount_point.contains("odd-")), "{:?}", raw.facts.mounts);
    let paths: Vec<String> = decode(&raw).files.into_iter().map(|file| file.path).collect();
    assert!(paths.iter().any(|path| path == data.to_str().unwrap()), "{paths:?}");
}

#[test]
fn a_process_whose_name_is_no_utf_8_runs_and_is_followed() {
    if !root() {
        return;
    }
    let ((ready, ready_writer), mut recorder) =
        (pipe().unwrap(), Recorder::load(Options { running: true, ..Options::default() }).unwrap());
    // SAFETY: the child calls system calls only, until it is killed.
    let child = match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let _ = nix::sys::prctl::set_name(c"\xff) \xfe");
            let _ = write(&ready_writer, b"x");
            loop {
                nix::unistd::pause();
            }
        }
    };
    read(&ready, &mut [0]).unwrap();
    let pid = child.as_raw().unsigned_abs();
    let since = Owner::of(pid);
    recorder.attach_running(&Running::Processes(vec![pid])).unwrap();
    let raw = recorder.finish().unwrap();
    nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL).unwrap();
    waitpid(child, None).unwrap();
    assert!(since.is_some());
    assert!(!raw.facts.unavailable.iter().any(|gap| gap.what.starts_with("process ")), "{:?}", raw.facts.unavailable);
    assert!(decode(&raw).exits.iter().any(|exit| exit.pid == pid), "the process was not followed");
}
