//! Asking the kernel: a child takes on an identity, calls faccessat2(2) for each path and sends the answers.

use crate::trees::IDS;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Uid, fork, pipe, setgroups, setresgid, setresuid};
use rand::{Rng, RngExt};
use slowpath_artifacts::access::{FileCapabilities, IdRange, Identity, UserNamespace};
use slowpath_process::Capabilities;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// An identity, and how the child gets it.
#[derive(Clone, Debug)]
pub struct Who {
    pub identity: Identity,
    /// It makes a user namespace that maps its own user and group, in which it has all capabilities.
    pub in_namespace: bool,
}

impl Who {
    pub fn root() -> Self {
        Self { identity: Identity::new(0, 0, Vec::new()), in_namespace: false }
    }

    pub fn nobody() -> Self {
        Self { identity: Identity::new(65534, 65534, Vec::new()), in_namespace: false }
    }

    pub fn random(random: &mut impl Rng) -> Self {
        let mut id = || IDS[random.random_range(0..IDS.len())];
        let (uid, gid, group) = (id(), id(), id());
        let groups = if random.random_range(0..2) == 0 { vec![group] } else { Vec::new() };
        let mut identity = Identity { capabilities: FileCapabilities::default(), ..Identity::new(uid, gid, groups) };
        let kind = random.random_range(0..8);
        let capabilities = &mut identity.capabilities;
        match kind {
            0 => capabilities.dac_override = true,
            1 => capabilities.dac_read_search = true,
            2 => *capabilities = FileCapabilities::ALL,
            _ => {}
        }
        let in_namespace = kind == 3 && uid != 0;
        if in_namespace {
            let only = |id| vec![IdRange { first: id, count: 1 }];
            identity.capabilities = FileCapabilities::ALL;
            identity.namespace = UserNamespace::Mapped { uids: only(uid), gids: only(gid) };
        }
        Self { identity, in_namespace }
    }
}

/// What the kernel said: for each path the errno for reading, writing and executing, 0 for yes.
pub struct Asked {
    pub answers: Vec<[u8; 3]>,
}

/// Asks as `who`. `None` where the machine gives no user namespace.
pub fn ask(who: &Who, paths: &[PathBuf]) -> Option<Asked> {
    let names: Vec<CString> = paths.iter().map(|path| CString::new(path.as_os_str().as_bytes()).unwrap()).collect();
    let (ours, theirs) = pipe().unwrap();
    // SAFETY: the child makes system calls, writes into the pipe and ends by _exit; what it allocates is its own copy.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let told = become_them(who).map(|()| answers(&names));
            let code = match told {
                Some(answers) => i32::from(File::from(theirs).write_all(&answers).is_err()),
                None => 2,
            };
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) }
        }
        ForkResult::Parent { child } => {
            drop(theirs);
            let mut bytes = Vec::new();
            File::from(ours).read_to_end(&mut bytes).unwrap();
            match waitpid(child, None).unwrap() {
                WaitStatus::Exited(_, 0) => {
                    let (answers, rest) = bytes.as_chunks::<3>();
                    assert!(rest.is_empty() && answers.len() == paths.len(), "{} answers", bytes.len());
                    Some(Asked { answers: answers.to_vec() })
                }
                WaitStatus::Exited(_, 2) if who.in_namespace => None,
                other => panic!("the child of {who:?}: {other:?}"),
            }
        }
    }
}

fn become_them(who: &Who) -> Option<()> {
    let identity = &who.identity;
    let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
    nix::sys::prctl::set_keepcaps(true).ok()?;
    setgroups(&groups).ok()?;
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    setresgid(gid, gid, gid).ok()?;
    setresuid(uid, uid, uid).ok()?;
    let wanted = if who.in_namespace { FileCapabilities::default() } else { identity.capabilities };
    let bits = u64::from(wanted.dac_override) << 1 | u64::from(wanted.dac_read_search) << 2;
    Capabilities { effective: bits, permitted: bits, inheritable: 0 }.apply().ok()?;
    if who.in_namespace {
        // Its own files in /proc belong to root otherwise (proc(5)).
        nix::sys::prctl::set_dumpable(true).ok()?;
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER).ok()?;
        fs::write("/proc/self/setgroups", "deny").ok()?;
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")).ok()?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")).ok()?;
    }
    Some(())
}

fn answers(names: &[CString]) -> Vec<u8> {
    let mut answers = Vec::with_capacity(names.len() * 3);
    for name in names {
        for mode in [libc::R_OK, libc::W_OK, libc::X_OK] {
            // SAFETY: a string that lives, and integers.
            let result =
                unsafe { libc::syscall(libc::SYS_faccessat2, libc::AT_FDCWD, name.as_ptr(), mode, libc::AT_EACCESS) };
            let errno = if result == 0 { 0 } else { std::io::Error::last_os_error().raw_os_error().unwrap_or(255) };
            answers.push(errno as u8);
        }
    }
    answers
}
