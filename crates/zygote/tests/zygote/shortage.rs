//! Memory that becomes short in the zygote's cgroup: the spares go, the requests are answered, and the OOM killer has no work.

use crate::served::{Served, eventually, is_root, job};
use slowpath_zygote::Ending;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A group with so little memory that reading the file of [`READER`] again and again reclaims all the time.
const LIMIT: u64 = 24 << 20;

/// Writes a file of four times the limit, and reads it until it is ended: each page is read from the disk again.
const READER: &str = "
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
os.unlink(sys.argv[1])
for _ in range(96):
    os.write(file, b'x' * (1 << 20))
os.fsync(file)
pages = mmap.mmap(file, 0, prot=mmap.PROT_READ)
while True:
    for at in range(0, len(pages), 4096):
        pages[at]
";

/// A memory cgroup that goes with its processes.
struct Group(PathBuf);

impl Group {
    /// One with the limit, or why there is none.
    fn new() -> Result<Self, String> {
        let first = Path::new("/sys/fs/cgroup/memory");
        let (parent, limit) = match first.join("memory.limit_in_bytes").exists() {
            true => (first, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        let group = Self(parent.join(format!("slowpath-zygote-test-{}", std::process::id())));
        fs::create_dir(&group.0).map_err(|error| format!("{}: {error}", group.0.display()))?;
        let limited = fs::write(group.0.join(limit), LIMIT.to_string());
        limited.map_err(|error| format!("no memory controller ({limit}: {error})"))?;
        Ok(group)
    }

    /// Has a command start in it.
    fn takes(&self, command: &mut Command) {
        let path = CString::new(self.0.join("cgroup.procs").as_os_str().as_bytes()).unwrap();
        // SAFETY: between fork and exec, with calls that are safe there: open, write, close.
        unsafe {
            command.pre_exec(move || {
                let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                let done = libc::write(file, b"0".as_ptr().cast(), 1);
                libc::close(file);
                if done == 1 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
            });
        }
    }

    fn oom_kills(&self) -> u64 {
        let text = ["memory.oom_control", "memory.events"].map(|name| fs::read_to_string(self.0.join(name)));
        let lines = text.iter().flatten().flat_map(|text| text.lines());
        lines.filter_map(|line| line.strip_prefix("oom_kill ")?.parse::<u64>().ok()).sum()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let members = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for pid in members.lines().filter_map(|line| line.parse().ok()) {
            // SAFETY: takes integers; members of the group are this test's own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        eventually(|| fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}

/// Ends with the test.
struct Reader(Child);

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn when_memory_is_short_spares_go_before_the_oom_killer_comes_and_return_later() {
    if !is_root() || !Path::new("/proc/pressure/memory").exists() {
        println!("skipped: needs root and a kernel that tells of memory pressure");
        return;
    }
    let group = match Group::new() {
        Ok(group) => group,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let served = Served::with(None, "spares = 4\nmost_spares = 4", |command| group.takes(command));
    eventually(|| served.status().spares == 4);
    let from_spare = served.spawn(job(&["exit", "0"])).unwrap();
    assert!(from_spare.from_spare && from_spare.wait().unwrap() == Ending::Exited(0));
    // Beside the disk: a file of a tmpfs would be memory itself.
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", READER]).arg(place.path().join("pages")).stdin(Stdio::null());
    group.takes(&mut command);
    let reader = Reader(command.spawn().unwrap());
    eventually(|| served.status().spares_dropped >= 4);
    // None comes back while memory is short, and whoever asks has a child all the same.
    let forked = served.spawn(job(&["exit", "5"])).unwrap();
    assert!(!forked.from_spare && forked.wait().unwrap() == Ending::Exited(5));
    drop(reader);
    eventually(|| served.status().spares == 4);
    assert_eq!(group.oom_kills(), 0);
    drop(served);
}
