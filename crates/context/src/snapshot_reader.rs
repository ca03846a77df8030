//! Reads the execution context of a process that runs here, or of a copy of the kernel's files.
//!
//! Owns that a snapshot is of one program, whatever the process executes meanwhile, and which process and threads a copy is of; also
//! when a snapshot gets what is read apart because it takes root or is foreign: the contents of seccomp filters, and a look into the
//! files of loaded libraries. Leaves what of the kernel's files says which factor to the factors, the files themselves to
//! `kernel_files` and `task_files`, stopping a process for its filters to `filters`, and what a snapshot holds to `snapshot`.

use crate::factor::Scope;
use crate::factors::{self, loaded_libraries};
use crate::filters;
use crate::kernel_files::{KernelFiles, Missing};
use crate::reading::Reading;
use crate::snapshot::{Readings, SCHEMA, Snapshot, Thread};
use crate::task_files::{TaskFiles, joined};
use crate::trust::Source;
use slowpath_process::StatLine;
use std::path::Path;

/// Where a context is from that was read of a process.
const HERE: &str = "this machine";

/// Why there is no snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Nothing with this number runs.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// The kernel shows nothing of it.
    #[error("process {0} cannot be looked at: {1}")]
    Refused(u32, String),
    /// It has ended, and only its parent has not asked for its exit code yet; or it did while it was read.
    #[error("process {0} has ended")]
    Ended(u32),
    /// It executed other programs each time that it was read.
    #[error("process {0} executes one program after the other")]
    Moves(u32),
    /// The directory holds neither a `status` nor a `proc/PID/status`.
    #[error("{0} holds no status of a process")]
    NoStatus(String),
    /// It holds several processes.
    #[error("{0} holds several processes: {1}")]
    Several(String, String),
}

/// Times that a process is read which executes another program meanwhile.
const ATTEMPTS: usize = 3;

/// `PF_EXITING` of the flags in `stat` (include/linux/sched.h).
const EXITING: u32 = 4;

/// What is the same as long as a process runs one program (proc_pid_stat(5)).
#[derive(PartialEq, Eq)]
struct Running {
    /// When it began, in ticks since boot: with the number this names it.
    start: Option<u64>,
    /// It is about to end, is a zombie, or not even that: then the kernel does not show all of it any more.
    has_ended: bool,
    /// What it executes, where that can be seen.
    program: Option<String>,
}

impl Running {
    fn of(kernel_files: &KernelFiles, directory: &str) -> Result<Self, Missing> {
        let stat = kernel_files.read(&format!("{directory}/stat"))?;
        let stat = StatLine::parse(stat.as_bytes()).ok_or_else(|| Missing::Failed("its stat is not one".to_owned()))?;
        Ok(Self {
            start: stat.start(),
            has_ended: stat.has_ended() || stat.field::<u32>(9).is_some_and(|flags| flags & EXITING != 0),
            program: kernel_files.link(&format!("{directory}/exe")).ok(),
        })
    }
}

/// Whether a process sees the users and files that this one sees: in a container of the user's, what is found under a path is somebody
/// else's choice.
fn has_own_namespaces(pid: u32) -> bool {
    let link = |process: &str, kind: &str| std::fs::read_link(format!("/proc/{process}/ns/{kind}")).ok();
    let is_same = |kind: &str| link("self", kind).is_some_and(|own| link(&pid.to_string(), kind) == Some(own));
    is_same("user") && is_same("mnt")
}

impl Snapshot {
    /// Reads a process that runs here, all of it of one program.
    ///
    /// # Errors
    /// There is no such process, it ended while it was read, or it executed one program after the other.
    pub fn of_process(pid: u32) -> Result<Self, SnapshotError> {
        let kernel_files = KernelFiles::here();
        let directory = format!("proc/{pid}");
        for _ in 0..ATTEMPTS {
            let before = Running::of(&kernel_files, &directory).map_err(|missing| match missing {
                Missing::Absent => SnapshotError::NoProcess(pid),
                Missing::Failed(reason) => SnapshotError::Refused(pid, reason),
                _ => SnapshotError::Refused(pid, "permission denied".to_owned()),
            })?;
            if before.has_ended {
                return Err(SnapshotError::Ended(pid));
            }
            let mut snapshot = Self::read(&kernel_files, &directory, Some(pid), HERE.to_owned());
            // Four equal ids are reported as one (`factors::credentials`).
            let user = snapshot.reading("credentials").and_then(Reading::value).and_then(|value| value.part("user"));
            let user = user.filter(|_| has_own_namespaces(pid));
            snapshot.source = Source::Process { uid: user.and_then(|uid| uid.parse().ok()) };
            // Of a process that has ended meanwhile the kernel still shows some files and not others.
            match Running::of(&kernel_files, &directory) {
                Ok(after) if after == before => return Ok(snapshot),
                Ok(after) if after.start == before.start && !after.has_ended => {}
                _ => return Err(SnapshotError::Ended(pid)),
            }
        }
        Err(SnapshotError::Moves(pid))
    }

    /// Reads a copy of the kernel's files: as `/` on the machine (`proc/PID/...`, `sys/...`), or with the files of the process at its
    /// top.
    ///
    /// # Errors
    /// It holds no process, or several.
    pub fn of_directory(directory: &Path) -> Result<Self, SnapshotError> {
        let kernel_files = KernelFiles::Saved(directory.to_owned());
        let shown = directory.display().to_string();
        if kernel_files.read("status").is_ok() {
            return Ok(Self::read(&kernel_files, "", None, shown));
        }
        let processes: Vec<u32> =
            kernel_files.list("proc").unwrap_or_default().iter().filter_map(|name| name.parse().ok()).collect();
        match processes.as_slice() {
            [pid] if kernel_files.read(&format!("proc/{pid}/status")).is_ok() => {
                Ok(Self::read(&kernel_files, &format!("proc/{pid}"), Some(*pid), shown))
            }
            [] | [_] => Err(SnapshotError::NoStatus(shown)),
            several => {
                let numbers: Vec<String> = several.iter().map(u32::to_string).collect();
                Err(SnapshotError::Several(shown, numbers.join(", ")))
            }
        }
    }

    /// Reads the text of one `/proc/PID/status`, as somebody copied or published it; `origin` says where it is from.
    ///
    /// # Errors
    /// It is none.
    pub fn of_status(text: String, origin: String) -> Result<Self, SnapshotError> {
        let kernel_files = KernelFiles::Status(text);
        let snapshot = Self::read(&kernel_files, "", None, origin.clone());
        if snapshot.name.is_empty() { Err(SnapshotError::NoStatus(origin)) } else { Ok(snapshot) }
    }

    fn read(kernel_files: &KernelFiles, directory: &str, pid: Option<u32>, origin: String) -> Self {
        let process = TaskFiles::process(kernel_files, directory, pid);
        let of_scope = |scope: Scope, task: &TaskFiles<'_>| -> Readings {
            factors::of(scope).map(|factor| (factor.name.to_owned(), (factor.read)(task))).collect()
        };
        let name_of = |task: &TaskFiles<'_>| task.status("Name").unwrap_or_default();
        let mut tids: Vec<u32> = kernel_files
            .list(&joined(directory, "task"))
            .unwrap_or_default()
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect();
        tids.sort_by_key(|tid| (Some(*tid) != pid, *tid));
        let mut threads: Vec<Thread> = tids
            .into_iter()
            .map(|tid| {
                let task = TaskFiles::thread(kernel_files, directory, tid);
                Thread { tid: Some(tid), name: name_of(&task), factors: of_scope(Scope::Thread, &task) }
            })
            .collect();
        if threads.is_empty() {
            // A copy often has the files of the process only, which are those of its first thread.
            let factors = of_scope(Scope::Thread, &process);
            threads.push(Thread { tid: pid, name: name_of(&process), factors });
        }
        let words = process.file("cmdline").map(|text| text.to_string()).unwrap_or_default();
        Self {
            schema: SCHEMA.to_owned(),
            origin,
            boot: kernel_files.read("proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned()),
            pid,
            name: name_of(&process),
            command: words.split('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect(),
            machine: of_scope(Scope::Machine, &process),
            process: of_scope(Scope::Process, &process),
            threads,
            filters: None,
            source: Source::Foreign,
        }
    }

    /// Reads the contents of its seccomp filters, of a process that runs here and has some: for that it is stopped for some ten
    /// microseconds, and it takes root. Where that is not to be had they stay unknown; how many there are is known without.
    pub fn read_filters(&mut self) {
        let has_some =
            self.reading("seccomp").and_then(Reading::value).and_then(|value| value.part("mode")) == Some("filter");
        let here = self.boot.is_some() && self.origin == HERE;
        if let Some(tid) = self.main_thread().and_then(|thread| thread.tid).filter(|_| has_some && here) {
            self.filters = filters::read(tid).ok();
        }
    }

    /// Looks into the files with code that the process has mapped. They are foreign: call it as the user whose they are.
    pub fn examine_loaded_libraries(&mut self) {
        if let Some(Reading::Known { value }) = self.process.get_mut(loaded_libraries::LOADED_LIBRARIES.name) {
            loaded_libraries::examine(value);
        }
    }
}
