//! A cgroup v1 memory group for a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A memory cgroup of the test's own. A shell that waits for the test's end removes it, however that comes.
pub struct Group {
    /// Its directory.
    pub path: PathBuf,
    remover: Child,
}

/// Groups that are left by nobody: the shell waits for the end of its input, and then for that of the group's last process.
const REMOVES: &str =
    "trap '' INT TERM HUP; cat > /dev/null; for i in $(seq 200); do rmdir \"$1\" && exit; sleep 0.1; done";

impl Group {
    /// With this limit; `None` where there is no cgroup v1 memory controller.
    pub fn new(limit: &str) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("slowpath-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from("/sys/fs/cgroup/memory").join(name);
        if !Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists() {
            return None;
        }
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", REMOVES, "remover"]).arg(&path);
        let remover = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let group = Self { path, remover };
        fs::create_dir(&group.path).ok()?;
        fs::write(group.path.join("memory.limit_in_bytes"), limit).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        drop(self.remover.stdin.take());
        let _ = self.remover.wait();
    }
}
