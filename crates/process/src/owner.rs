//! A process, known by pid and start time: whether it still runs, and what it owns that outlives it, which carries both in its name.

use crate::stat_line::StatLine;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of things named by this process, so that two labs of one process differ.
static SERIAL: AtomicU32 = AtomicU32::new(0);

/// A process by pid and start time; pids are used again, the pair is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Thread-group id in the pid namespace of `/proc`.
    pub pid: u32,
    /// Start in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start: u64,
}

impl Owner {
    /// The calling process.
    ///
    /// # Errors
    /// `/proc` is not mounted or shows another pid namespace.
    pub fn this_process() -> io::Result<Self> {
        let pid = std::process::id();
        Self::of(pid).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("/proc/{pid}/stat is missing")))
    }

    /// The process that has this pid now; `None` when there is none or it is a zombie.
    pub fn of(pid: u32) -> Option<Self> {
        let line = StatLine::of(pid).filter(|line| !line.has_ended())?;
        Some(Self { pid, start: line.start()? })
    }

    /// Whether this very process still runs.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// A fresh name `<prefix>-<pid>-<start>-<serial>`.
    pub fn fresh_name(self, prefix: &str) -> String {
        format!("{prefix}-{self}-{}", SERIAL.fetch_add(1, Ordering::Relaxed))
    }

    /// The owner written in a name made by `fresh_name` with the same prefix. Anybody can write such a name: it says
    /// something only where nobody but the caller could have made it ([`crate::StateDirectory`]), or together with the
    /// owner of what carries it.
    pub fn parse(name: &str, prefix: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(prefix)?.strip_prefix('-')?.split('-').map(str::parse::<u64>);
        let (pid, start, _serial) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
        if parts.next().is_some() {
            return None;
        }
        Some(Self { pid: u32::try_from(pid).ok()?, start })
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.pid, self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_fresh_name_gives_its_owner_back_and_two_names_differ() {
        let owner = Owner::this_process().unwrap();
        let (one, two) = (owner.fresh_name("slowpath-lab"), owner.fresh_name("slowpath-lab"));
        assert_ne!(one, two);
        assert_eq!(Owner::parse(&one, "slowpath-lab"), Some(owner));
    }

    #[test]
    fn foreign_names_have_no_owner() {
        for name in
            ["slowpath-lab-", "slowpath-lab-1-2", "slowpath-lab-1-2-3-4", "slowpath-lab-x-2-3", "slowpath-1-2-3"]
        {
            assert_eq!(Owner::parse(name, "slowpath-lab"), None, "{name}");
        }
    }

    #[test]
    fn a_reused_pid_is_not_the_owner() {
        let me = Owner::this_process().unwrap();
        assert!(me.is_alive());
        assert!(!Owner { start: me.start + 1, ..me }.is_alive());
    }

    #[test]
    fn one_that_has_ended_and_is_not_reaped_is_not_alive() {
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let began = std::time::Instant::now();
        while Owner::of(child.id()).is_some() && began.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        assert_eq!(Owner::of(child.id()), None);
        child.wait().unwrap();
    }

    #[test]
    fn a_process_whose_name_is_no_text_is_alive() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe) Z"));
        // By another process: a child that another test forks meanwhile has what this one has open, and a file that somebody writes is not
        // executed (ETXTBSY).
        assert!(std::process::Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap().success());
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let owner = Owner::of(child.id());
        let is_alive = owner.is_some_and(Owner::is_alive);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_alive, "{owner:?}");
    }

    #[test]
    fn a_zombie_is_dead() {
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let pid = child.id();
        // Without wait() the child stays a zombie; give it time to get there.
        for _ in 0..200 {
            if Owner::of(pid).is_none() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(Owner::of(pid), None);
        child.wait().unwrap();
    }
}
