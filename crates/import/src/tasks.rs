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

/// Of which process a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    pid: u32,
    /// Whether the thread had an event already, and is not only known to be one of the process.
    is_seen: bool,
}

/// Those that live.
#[derive(Debug, Default)]
pub struct Tasks {
    place_of: HashMap<u32, Place>,
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
        self.place_of.contains_key(&tid)
    }

    /// A thread that has an event now: of process `pid`, where the trace says it, and called `name`.
    pub fn see(&mut self, ts: Nanos, tid: u32, pid: Option<u32>, name: Option<&str>) -> Seen {
        let known = self.place_of.get(&tid).copied();
        let pid = pid.or(known.map(|place| place.pid)).unwrap_or(tid);
        let place = Place { pid, is_seen: true };
        if known != Some(place) {
            self.place(tid, place);
        }
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

    /// A process or thread that was made now; false where it had an event already.
    pub fn make(&mut self, ts: Nanos, tid: u32, pid: u32) -> bool {
        let place = Place { pid, is_seen: true };
        if self.place_of.get(&tid) == Some(&place) {
            return false;
        }
        self.place(tid, place);
        if tid == pid && self.processes.len() < MOST_THREADS {
            self.processes.insert(pid, Process { start: ts, name: String::new() });
        }
        true
    }

    /// A thread is one of this process, or will be when it is made.
    pub fn belongs(&mut self, tid: u32, pid: u32) {
        if self.place_of.get(&tid).is_none_or(|place| place.pid != pid) {
            self.place(tid, Place { pid, is_seen: false });
        }
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
        if self.place_of.remove(&tid).is_some_and(|place| place.pid == tid) {
            self.processes.remove(&tid);
        }
    }

    fn place(&mut self, tid: u32, place: Place) {
        if self.place_of.len() < MOST_THREADS || self.place_of.contains_key(&tid) {
            self.place_of.insert(tid, place);
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

    #[test]
    fn a_task_is_made_once_also_where_its_process_was_known_before() {
        let mut tasks = Tasks::default();
        tasks.belongs(8, 8);
        tasks.belongs(9, 8);
        assert!(tasks.make(Nanos(5), 8, 8) && tasks.make(Nanos(6), 9, 8));
        tasks.belongs(9, 8);
        assert!(!tasks.make(Nanos(7), 8, 8) && !tasks.make(Nanos(7), 9, 8));
        assert_eq!(tasks.see(Nanos(8), 9, None, None).thread.process, ProcessKey { pid: 8, start: Nanos(5) });
    }
}
