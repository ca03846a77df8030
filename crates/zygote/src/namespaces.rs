//! Namespaces of a child's own (namespaces(7)), entered by the child and read back; the pid namespace is made by the zygote around the
//! fork, because only children of who asks for it are in it.

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// One kind of namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Namespace {
    /// Mounts; they are private in it.
    Mount,
    /// Network devices, addresses, ports.
    Network,
    /// System V and POSIX message queues, shared memory.
    Ipc,
    /// Host name.
    Uts,
    /// Control groups.
    Cgroup,
    /// Process ids; the child is the first of it.
    Pid,
    /// User ids; the child's own is mapped to itself, and there is no other. For zygotes that are not root's.
    User,
}

impl Namespace {
    /// All.
    pub const ALL: [Self; 7] = [Self::Mount, Self::Network, Self::Ipc, Self::Uts, Self::Cgroup, Self::Pid, Self::User];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mount => "mount",
            Self::Network => "network",
            Self::Ipc => "ipc",
            Self::Uts => "uts",
            Self::Cgroup => "cgroup",
            Self::Pid => "pid",
            Self::User => "user",
        }
    }

    /// The one with this name.
    ///
    /// # Errors
    /// There is none; the text names all.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| format!("there are: {}", Self::ALL.map(Self::name).join(", ")))
    }

    /// Its link in `/proc/PID/ns`.
    pub fn link(self) -> &'static str {
        match self {
            Self::Mount => "mnt",
            Self::Network => "net",
            other => other.name(),
        }
    }

    fn flag(self) -> CloneFlags {
        match self {
            Self::Mount => CloneFlags::CLONE_NEWNS,
            Self::Network => CloneFlags::CLONE_NEWNET,
            Self::Ipc => CloneFlags::CLONE_NEWIPC,
            Self::Uts => CloneFlags::CLONE_NEWUTS,
            Self::Cgroup => CloneFlags::CLONE_NEWCGROUP,
            Self::Pid => CloneFlags::CLONE_NEWPID,
            Self::User => CloneFlags::CLONE_NEWUSER,
        }
    }
}

/// What a process is in now.
fn now_in(namespace: Namespace) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/ns/{}", namespace.link()))
}

/// Enters new ones, all but the pid namespace, and reads back that each is another than before.
///
/// # Errors
/// The kernel refuses one, or the process is in the same as before.
pub(crate) fn enter(wanted: &[Namespace]) -> io::Result<()> {
    let wanted: Vec<Namespace> = wanted.iter().copied().filter(|one| *one != Namespace::Pid).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let before = wanted.iter().map(|one| now_in(*one)).collect::<io::Result<Vec<_>>>()?;
    let (user, group) = (geteuid(), getegid());
    unshare(wanted.iter().fold(CloneFlags::empty(), |flags, one| flags | one.flag()))?;
    if wanted.contains(&Namespace::User) {
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        // Without this nobody but root may map a group (user_namespaces(7)).
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    if wanted.contains(&Namespace::Mount) {
        // Else what is mounted outside appears inside, and the other way round where the host shares its mounts.
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    }
    for (one, before) in wanted.iter().zip(before) {
        if now_in(*one)? == before {
            return Err(io::Error::other(format!("the {} namespace is the same as before", one.name())));
        }
    }
    Ok(())
}

/// As long as it lives, children of this process are in a new pid namespace.
pub(crate) struct ChildrenInNewPidNamespace {
    own: File,
}

impl ChildrenInNewPidNamespace {
    /// Begins it.
    ///
    /// # Errors
    /// The kernel refuses: it takes root.
    pub(crate) fn begin() -> io::Result<Self> {
        // That of the process itself, which it never leaves.
        let own = File::open("/proc/self/ns/pid")?;
        unshare(CloneFlags::CLONE_NEWPID)?;
        Ok(Self { own })
    }

    /// Ends it.
    ///
    /// # Errors
    /// The kernel refuses: then every later child would be in the last one's namespace, so there must be none.
    pub(crate) fn end(self) -> Result<(), Errno> {
        setns(&self.own, CloneFlags::CLONE_NEWPID)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_and_a_link_that_the_kernel_has() {
        for one in Namespace::ALL {
            assert_eq!(Namespace::named(one.name()), Ok(one));
            assert!(now_in(one).is_ok(), "{one:?}");
        }
        assert!(Namespace::named("net").unwrap_err().contains("network"));
    }
}
