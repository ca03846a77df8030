//! The threads and processes of a trace.

use slowpath_tables::{Nanos, ProcessKey};
use std::collections::HashMap;

/// Threads that are known at a time; those beyond are processes of their own.
const MOST_THREADS: usize = 1 << 20;

/// A thread, as rows name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub process: ProcessKey,
    /// Its id.
    pub tid: u32,
}

#[derive(Debug)]
struct Process {
    start: Nanos,
    name: String,
}

/// Those that live.
#[derive(Debug, Default)]
pub struct Tasks {
    process_of: HashMap<u32, u32>,
    processes: HashMap<u32, Process>,
}

/// What is new about a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The thread.
    pub thread: Thread,
    /// Whether its process has a name that it had not before.
    pub is_renamed: bool,
}

impl Tasks {
    /// Whether the thread was seen before.
    pub fn knows(&self, tid: u32) -> bool {
        self.process_of.contains_key(&tid)
    }

    /// A thread that has an event now: of process `pid`, where the trace says it, and called `name`.
    pub fn see(&mut self, ts: Nanos, tid: u32, pid: Option<u32>, name: Option<&str>) -> Seen {
        let pid = pid.or_else(|| self.process_of.get(&tid).copied()).unwrap_or(tid);
        self.place(tid, pid);
        let has_room = self.processes.len() < MOST_THREADS || self.processes.contains_key(&pid);
        if !has_room {
            let process = ProcessKey { pid, start: Nanos(0) };
            return Seen { thread: Thread { process, tid }, is_renamed: false };
        }
        let process = self.processes.entry(pid).or_insert_with(|| Process { start: ts, name: String::new() });
        let is_own = tid == pid;
        // Some events have what a worker of the kernel's does behind its name.
        let name = name.map(|name| match name.split_once('-') {
            Some((worker, _)) if worker.starts_with("kworker/") => worker,
            _ => name,
        });
        let is_renamed = name.is_some_and(|name| {
            // A thread's name is the begin of its program's, or on Android the end.
            let is_known = process.name.starts_with(name) || process.name.ends_with(name);
            !name.is_empty() && !is_known && (is_own || process.name.is_empty())
        });
        if let Some(name) = name.filter(|_| is_renamed) {
            name.clone_into(&mut process.name);
        }
        Seen { thread: Thread { process: ProcessKey { pid, start: process.start }, tid }, is_renamed }
    }

    /// A process or thread that was made now; false where it was known already.
    pub fn make(&mut self, ts: Nanos, tid: u32, pid: u32) -> bool {
        if self.process_of.get(&tid) == Some(&pid) {
            return false;
        }
        self.place(tid, pid);
        if tid == pid && self.processes.len() < MOST_THREADS {
            self.processes.insert(pid, Process { start: ts, name: String::new() });
        }
        true
    }

    /// A thread is one of this process.
    pub fn belongs(&mut self, tid: u32, pid: u32) {
        self.place(tid, pid);
    }

    /// A process runs the program of this path.
    pub fn runs(&mut self, pid: u32, path: &str) {
        if let Some(process) = self.processes.get_mut(&pid) {
            let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
            name.clone_into(&mut process.name);
        }
    }

    /// A thread that ended.
    pub fn end(&mut self, tid: u32) {
        if self.process_of.remove(&tid) == Some(tid) {
            self.processes.remove(&tid);
        }
    }

    fn place(&mut self, tid: u32, pid: u32) {
        if self.process_of.len() < MOST_THREADS || self.process_of.contains_key(&tid) {
            self.process_of.insert(tid, pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_called_as_its_first_thread_and_a_pid_that_is_used_again_is_another() {
        let mut tasks = Tasks::default();
        let first = tasks.see(Nanos(5), 8, Some(7), Some("worker"));
        assert!(first.is_renamed && first.thread.process == ProcessKey { pid: 7, start: Nanos(5) });
        assert!(tasks.see(Nanos(6), 7, Some(7), Some("app")).is_renamed);
        assert!(!tasks.see(Nanos(7), 8, None, Some("worker")).is_renamed);
        assert_eq!(tasks.see(Nanos(7), 8, None, None).thread.process.pid, 7);
        assert!(tasks.see(Nanos(7), 9, None, Some("kworker/0:1-events")).is_renamed);
        assert!(!tasks.see(Nanos(7), 9, None, Some("kworker/0:1")).is_renamed);
        tasks.end(7);
        assert_eq!(tasks.see(Nanos(9), 7, None, Some("app")).thread.process.start, Nanos(9));
    }
}
