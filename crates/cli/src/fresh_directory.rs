//! `{tmp}` in a command: a fresh, empty directory for each launch, owned by the target's user and removed afterwards.
//! Its name carries this process's pid and start time, so that what a killed slowpath left is found and removed.

use slowpath_lab::Owner;
use slowpath_launch::Identity;
use std::fs::{DirBuilder, read_dir, remove_dir_all};
use std::io;
use std::os::unix::fs::{DirBuilderExt, lchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const BASE: &str = "/tmp";
const PREFIX: &str = "slowpath-tmp-";
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Removed when dropped.
#[derive(Debug)]
pub struct FreshDirectory {
    path: PathBuf,
}

impl FreshDirectory {
    /// Makes one for `identity`.
    pub fn new(identity: &Identity) -> io::Result<Self> {
        let owner = Owner::this_process()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(BASE).join(format!("{PREFIX}{}-{}-{number}", owner.pid, owner.start));
        DirBuilder::new().mode(0o700).create(&path)?;
        let fresh = Self { path };
        if nix::unistd::geteuid().is_root() {
            lchown(&fresh.path, Some(identity.uid), Some(identity.gid))?;
        }
        Ok(fresh)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FreshDirectory {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.path);
    }
}

/// Directories whose slowpath is gone.
pub fn leftovers() -> Vec<PathBuf> {
    let Ok(entries) = read_dir(BASE) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { return false };
            let mut parts = rest.split('-').map(str::parse::<u64>);
            match (parts.next(), parts.next()) {
                (Some(Ok(pid)), Some(Ok(start))) => {
                    let owner = u32::try_from(pid).ok().and_then(Owner::of);
                    owner.is_none_or(|owner| owner.start != start)
                }
                _ => false,
            }
        })
        .map(|entry| entry.path())
        .collect()
}
