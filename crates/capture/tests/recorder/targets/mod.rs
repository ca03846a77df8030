//! What all tests of the recorder need: root, and a process that waits with its program until it is recorded.

#![allow(dead_code)] // a test program may use a part

use std::ffi::CString;
use std::os::fd::OwnedFd;

/// Whether recording can be tested; says so when not.
pub fn root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("skipped: recording needs root");
    }
    root
}

/// A forked child that executes `command` when the pipe's writing end says so.
pub fn held(command: &[&str]) -> (nix::unistd::Pid, OwnedFd) {
    let arguments: Vec<CString> = command.iter().map(|text| CString::new(*text).unwrap()).collect();
    let (reader, writer) = nix::unistd::pipe().unwrap();
    // SAFETY: the child only calls async-signal-safe functions: read, execv, _exit.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Parent { child } => (child, writer),
        nix::unistd::ForkResult::Child => {
            let mut byte = [0u8; 1];
            let _ = nix::unistd::read(&reader, &mut byte);
            let _ = nix::unistd::execv(&arguments[0], &arguments);
            // SAFETY: ends the child without running the test's destructors.
            unsafe { libc::_exit(127) }
        }
    }
}
