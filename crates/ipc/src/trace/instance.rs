//! A private trace instance (Documentation/trace/ftrace.rst, "Instances"), reached through a tracefs that is mounted nowhere.
//!
//! Other users of the kernel's trace are not disturbed. The instance ends with its owner: a process that outlives the owner
//! removes it. Where that one was killed too, the next run or `slowpath doctor --clean` does: the name says who the owner is, and
//! in which pid namespace. Removing is rmdir(2) alone, which the kernel refuses for an instance in use and which changes nothing
//! then.

use crate::children::Child;
use crate::detached;
use crate::memory::SharedMemory;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use slowpath_process::Owner;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Beginning of the names of instances; the inode of the owner's pid namespace and what [`Owner`] adds follow.
const PREFIX: &str = "slowpath-ipc";
/// Inode of the initial pid namespace (`PROC_PID_INIT_INO`, include/linux/proc_ns.h), in which all processes are seen.
const INITIAL_NAMESPACE: u64 = 0xefff_fffc;
/// How often removing a busy instance is tried, every 10 ms: clients that die with their parent hold files of it for a moment.
const PATIENCE: u32 = 100;
/// Buffer of each CPU in KiB: some tenths of a second of a busy CPU.
const BUFFER_KB: &str = "4096";
/// What is kept of a trace at most: its newest bytes, for the miss stands at the end.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// Events that explain where the time of a transaction went. Those that a kernel lacks are listed as unavailable.
const EVENTS: &[&str] = &[
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_wakeup_new",
    "sched/sched_migrate_task",
    "sched/sched_pi_setprio",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "workqueue/workqueue_execute_start",
    "workqueue/workqueue_execute_end",
    "power/cpu_frequency",
    "power/cpu_idle",
];
/// Groups of events that only some kernels have and nobody misses elsewhere: the interrupt vectors of x86, binder.
const GROUPS: &[&str] = &["irq_vectors", "binder"];

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
#[error("the kernel's trace cannot be used: {what}")]
pub struct TraceError {
    what: String,
    #[source]
    source: io::Error,
}

impl TraceError {
    /// As what is missing.
    pub fn unavailable(&self) -> Unavailable {
        let Self { source, .. } = self;
        declared::TRACE.because(format!("{self}: {source}"), "run as root on a kernel with CONFIG_TRACING")
    }
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> TraceError {
    let what = what.into();
    move |source| TraceError { what, source }
}

/// A detached tracefs.
fn tracefs() -> io::Result<OwnedFd> {
    detached::mounted(c"tracefs")
}

fn open(root: &OwnedFd, path: &str, flags: OFlag) -> io::Result<File> {
    Ok(openat(root, path, flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW, Mode::empty())?.into())
}

fn put(root: &OwnedFd, path: &str, text: &str) -> io::Result<()> {
    open(root, path, OFlag::O_WRONLY)?.write_all(text.as_bytes())
}

/// Whether this user made the instance: who else may make one makes it as somebody else.
fn is_ours(root: &OwnedFd, name: &str) -> bool {
    let path = format!("instances/{name}");
    fstatat(root, path.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW).is_ok_and(|found| found.st_uid == geteuid().as_raw())
}

/// Inode of the pid namespace of a process (`self` or a pid), which says which namespace it is (namespaces(7)).
fn namespace_of(process: &str) -> io::Result<u64> {
    Ok(std::fs::metadata(format!("/proc/{process}/ns/pid"))?.ino())
}

fn prefix_in(namespace: u64) -> String {
    format!("{PREFIX}-{namespace}")
}

/// The pid namespace and the owner in a name of an instance.
fn owner_of(name: &str) -> Option<(u64, Owner)> {
    let namespace = name.strip_prefix(PREFIX)?.strip_prefix('-')?.split('-').next()?.parse().ok()?;
    Some((namespace, Owner::parse(name, &prefix_in(namespace))?))
}

/// Whether some process is in a pid namespace, or may be. Says something in the initial namespace only.
fn has_process(namespace: u64) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    let names = processes.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).any(|pid| match namespace_of(&pid) {
        Ok(of) => of == namespace,
        // A process that ended meanwhile is in none.
        Err(error) => error.kind() != io::ErrorKind::NotFound && error.raw_os_error() != Some(libc::ESRCH),
    })
}

/// Whether an owner is dead, seen from the pid namespace `own`: in another one its pid belongs to somebody else or nobody. From the
/// initial one it is dead when nobody lives in its namespace; from others nothing is seen.
fn is_dead((namespace, owner): (u64, Owner), own: u64, lives: impl Fn(u64) -> bool) -> bool {
    if namespace == own { !owner.is_alive() } else { own == INITIAL_NAMESPACE && !lives(namespace) }
}

/// Names of instances of dead owners.
fn orphans(root: &OwnedFd) -> Vec<String> {
    let (Ok(mut names), Ok(own)) = (instances(root), namespace_of("self")) else { return Vec::new() };
    names.retain(|name| owner_of(name).is_some_and(|owner| is_dead(owner, own, has_process)) && is_ours(root, name));
    names
}

fn instances(root: &OwnedFd) -> io::Result<Vec<String>> {
    let folder = std::fs::read_dir(format!("/proc/self/fd/{}/instances", root.as_raw_fd()))?;
    Ok(folder.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// Where an instance is seen when tracefs is mounted in its usual place.
fn shown(name: &str) -> PathBuf {
    Path::new("/sys/kernel/tracing/instances").join(name)
}

/// Instances that killed commands left. None where tracefs cannot be opened (it needs root).
pub fn leftovers() -> Vec<PathBuf> {
    tracefs().map(|root| orphans(&root).iter().map(|name| shown(name)).collect()).unwrap_or_default()
}

/// Removes what killed commands left: each instance, and why it stays if it does.
pub fn clean() -> Vec<(PathBuf, io::Result<()>)> {
    let Ok(root) = tracefs() else { return Vec::new() };
    orphans(&root).iter().map(|name| (shown(name), remove(&root, name, PATIENCE))).collect()
}

/// Names of all instances of benchmarks, whoever owns them.
///
/// # Errors
/// tracefs cannot be opened.
pub fn names() -> Result<Vec<String>, TraceError> {
    let root = tracefs().map_err(failed("tracefs"))?;
    let mut names = instances(&root).map_err(failed("instances"))?;
    names.retain(|name| owner_of(name).is_some());
    Ok(names)
}

/// Removes an instance, running or not. It is busy as long as someone has a file of it open, and then it is left as it was: who
/// looks dead may live (in another pid namespace, or in the moment in which it is made).
fn remove(root: &OwnedFd, name: &str, tries: u32) -> io::Result<()> {
    let mut result = Ok(());
    for _ in 0..tries {
        result = unlinkat(root, format!("instances/{name}").as_str(), UnlinkatFlags::RemoveDir);
        match result {
            Err(Errno::EBUSY) => std::thread::sleep(Duration::from_millis(10)),
            // Its keeper was quicker.
            Err(Errno::ENOENT) => return Ok(()),
            _ => break,
        }
    }
    result.map_err(|errno| match errno {
        Errno::EBUSY => io::Error::new(io::ErrorKind::ResourceBusy, "in use: a process has a file of it open"),
        errno => errno.into(),
    })
}

/// What clients need to stop the trace at once.
#[derive(Debug)]
pub struct Stopper {
    stopped: SharedMemory,
    marker: File,
    on: File,
}

impl Stopper {
    /// Stops the trace; whether this caller was the first.
    pub(crate) fn stop(&self) -> bool {
        if self.stopped.word(0).swap(1, Ordering::AcqRel) != 0 {
            return false;
        }
        // The marker first: it must still go into the buffer.
        let _ = (&self.marker).write_all(b"slowpath-ipc: deadline missed");
        let _ = (&self.on).write_all(b"0");
        true
    }

    /// Whether someone stopped it.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.word(0).load(Ordering::Acquire) != 0
    }
}

/// The text of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// Whole lines, oldest first.
    pub bytes: Vec<u8>,
    /// Whether older lines were left out because there are too many.
    pub cut: bool,
}

/// The last `most` bytes of what is read, from the beginning of a line on.
fn newest(mut from: impl Read, most: usize) -> io::Result<Text> {
    let (mut bytes, mut cut) = (Vec::new(), false);
    let leave_newest = |bytes: &mut Vec<u8>| {
        bytes.drain(..bytes.len() - most);
    };
    let mut piece = vec![0; (most / 4).clamp(1, 1024 * 1024)];
    loop {
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // With some room, so that the bytes are not moved for every piece.
        if bytes.len() > most + most / 2 {
            leave_newest(&mut bytes);
            cut = true;
        }
    }
    if bytes.len() > most {
        leave_newest(&mut bytes);
        cut = true;
    }
    if cut {
        let line = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        bytes.drain(..line);
    }
    Ok(Text { bytes, cut })
}

/// A running trace instance.
#[derive(Debug)]
pub struct Instance {
    root: OwnedFd,
    name: String,
    /// `None` once it is being removed: an instance with open files is busy.
    stopper: Option<Stopper>,
    /// Closed by the owner's death too; then the keeper removes the instance.
    leash: Option<File>,
    keeper: Child,
    /// Events that this kernel has not.
    pub unavailable: Vec<Unavailable>,
}

impl Instance {
    /// Makes an instance with all events and starts it.
    ///
    /// # Errors
    /// No privilege (CAP_SYS_ADMIN), no tracefs in this kernel, or a lockdown.
    pub fn start() -> Result<Self, TraceError> {
        let root = tracefs().map_err(failed("tracefs cannot be opened (it needs root)"))?;
        let namespace = namespace_of("self").map_err(failed("/proc/self/ns/pid"))?;
        let name = Owner::this_process().map_err(failed("/proc"))?.fresh_name(&prefix_in(namespace));
        let (mut leash_end, leash) = nix::unistd::pipe2(OFlag::O_CLOEXEC)
            .map(|(read, write)| (File::from(read), File::from(write)))
            .map_err(|errno| failed("pipe")(errno.into()))?;
        // Before the instance exists: whenever the owner dies from now on, somebody removes it.
        let mut leash = Some(leash);
        let keeper = Child::start_surviving(|| {
            drop(leash.take());
            keep(&root, &name, &mut leash_end)
        })
        .map_err(|error| failed("a process to remove the instance")(io::Error::other(error)))?;
        drop(leash_end);
        mkdirat(&root, format!("instances/{name}").as_str(), Mode::from_bits_truncate(0o700))
            .map_err(|errno| failed(format!("instances/{name} cannot be made"))(errno.into()))?;
        let mut instance = Self { root, name, stopper: None, leash, keeper, unavailable: Vec::new() };
        instance.begin()?;
        Ok(instance)
    }

    fn begin(&mut self) -> Result<(), TraceError> {
        let path = |file: &str| format!("instances/{}/{file}", self.name);
        let set = |file: &str, text: &str| put(&self.root, &path(file), text).map_err(failed(file.to_owned()));
        // Not before all events are on: of what began meanwhile the trace would have the beginning and not the end, or the reverse.
        set("tracing_on", "0")?;
        // The clock of the samples.
        set("trace_clock", "mono")?;
        set("buffer_size_kb", BUFFER_KB)?;
        let mut unavailable = Vec::new();
        for event in EVENTS {
            if let Err(error) = put(&self.root, &path(&format!("events/{event}/enable")), "1") {
                let gap = declared::TRACE_EVENT.of(&[&event], error.to_string(), "a kernel that has this event");
                unavailable.push(gap);
            }
        }
        for group in GROUPS {
            let _ = put(&self.root, &path(&format!("events/{group}/enable")), "1");
        }
        let writing = |file: &str| open(&self.root, &path(file), OFlag::O_WRONLY).map_err(failed(file.to_owned()));
        let stopped = SharedMemory::new(64).map_err(failed("mmap"))?;
        let stopper = Stopper { stopped, marker: writing("trace_marker")?, on: writing("tracing_on")? };
        set("tracing_on", "1")?;
        self.unavailable = unavailable;
        self.stopper = Some(stopper);
        Ok(())
    }

    /// The same, after what killed commands left was removed. What stays is said by `slowpath doctor`.
    ///
    /// # Errors
    /// As [`Instance::start`].
    pub fn start_clean() -> Result<Self, TraceError> {
        drop(clean());
        Self::start()
    }

    /// What clients need to stop it.
    pub fn stopper(&self) -> Option<&Stopper> {
        self.stopper.as_ref()
    }

    /// The instance's directory for messages.
    pub fn path(&self) -> String {
        shown(&self.name).display().to_string()
    }

    /// Its text, after it was stopped: bytes of the kernel with names that other programs chose.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn text(&self) -> Result<Text, TraceError> {
        let path = format!("instances/{}/trace", self.name);
        open(&self.root, &path, OFlag::O_RDONLY).and_then(|file| newest(file, MOST_BYTES)).map_err(failed("trace"))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.stopper = None;
        self.leash = None;
        self.keeper.wait();
        // Where the keeper was killed.
        let _ = remove(&self.root, &self.name, 1);
    }
}

/// The keeper's life: waits until nobody holds the leash, then removes the instance.
fn keep(root: &OwnedFd, name: &str, leash: &mut File) -> i32 {
    // Not ended by what ends the owner's process group.
    let _ = nix::unistd::setsid();
    let (root_fd, leash_fd) = (root.as_raw_fd().unsigned_abs(), leash.as_raw_fd().unsigned_abs());
    let (low, high) = (root_fd.min(leash_fd), root_fd.max(leash_fd));
    let mut from = 0;
    for kept in [low, high, u32::MAX] {
        if from < kept {
            // SAFETY: closes descriptors that this process does not use; no pointers.
            unsafe { libc::syscall(libc::SYS_close_range, from, kept - 1, 0) };
        }
        from = kept.saturating_add(1);
    }
    let _ = leash.read(&mut [0]);
    i32::from(remove(root, name, 5 * PATIENCE).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_who_owns_them_and_others_are_nobodys() {
        let own = Owner::this_process().unwrap();
        assert_eq!(owner_of(&own.fresh_name(&prefix_in(7))), Some((7, own)));
        for foreign in ["foreign", "slowpath-ipc", "slowpath-ipc-1-2-3", "slowpath-ipc-7-x-1-0", "slowpath-lab-7-1-2-3"]
        {
            assert_eq!(owner_of(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn an_owner_in_another_pid_namespace_is_dead_only_where_all_processes_are_seen_and_none_is_in_it() {
        let (alive, dead) = (Owner::this_process().unwrap(), Owner { pid: std::process::id(), start: 0 });
        let (empty, inhabited) = (|_| false, |_| true);
        let container = 4_026_540_000;
        assert!(is_dead((container, dead), container, inhabited) && !is_dead((container, alive), container, empty));
        // From a container, the owner on the host looks dead: its pid belongs to nobody here.
        assert!(!is_dead((INITIAL_NAMESPACE, dead), container, empty));
        assert!(!is_dead((container, dead), INITIAL_NAMESPACE, inhabited));
        assert!(is_dead((container, alive), INITIAL_NAMESPACE, empty));
        assert!(has_process(namespace_of("self").unwrap()));
    }

    #[test]
    fn of_a_long_trace_the_newest_lines_are_kept_and_it_says_that_it_was_cut() {
        let lines: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        let whole = newest(lines.as_bytes(), lines.len()).unwrap();
        assert_eq!((whole.bytes.as_slice(), whole.cut), (lines.as_bytes(), false));
        for most in [1, 9, 20, 100, 5000] {
            let text = newest(lines.as_bytes(), most).unwrap();
            assert!(text.cut && text.bytes.len() <= most, "{most}");
            assert!(lines.ends_with(std::str::from_utf8(&text.bytes).unwrap()), "{most}");
            assert!(text.bytes.is_empty() || text.bytes.starts_with(b"line "), "{most}: {text:?}");
            assert!(most < 20 || text.bytes.ends_with(b"line 999\n"), "{most}");
        }
    }

    #[test]
    fn an_instance_that_somebody_uses_is_not_removed_and_traces_on() {
        let instance = match Instance::start() {
            Ok(instance) => instance,
            Err(error) => {
                println!("skipped: {error}");
                return;
            }
        };
        let refused = remove(&instance.root, &instance.name, 1).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy, "{refused}");
        let mut on = String::new();
        let path = format!("instances/{}/tracing_on", instance.name);
        open(&instance.root, &path, OFlag::O_RDONLY).unwrap().read_to_string(&mut on).unwrap();
        assert_eq!(on.trim(), "1", "its trace was stopped");
        // Its own end removes it while it traces.
        let name = instance.name.clone();
        drop(instance);
        assert!(!names().unwrap().contains(&name));
    }
}
