//! The processes and threads of a profile, with their names and times.

use super::origin::Origin;
use crate::ThreadKey;
use fxprof_processed_profile::{ProcessHandle, Profile, ThreadHandle};
use slowpath_analysis::processes::Processes;
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey};
use std::collections::HashMap;

/// Every process that was recorded, with its main thread; other threads when they are first asked for.
pub(super) struct Threads<'t> {
    tables: &'t Tables,
    origin: Origin,
    processes: HashMap<ProcessKey, ProcessHandle>,
    threads: HashMap<ThreadKey, ThreadHandle>,
    began: HashMap<ThreadKey, Nanos>,
    ended: HashMap<ThreadKey, Nanos>,
}

impl<'t> Threads<'t> {
    pub(super) fn new(tables: &'t Tables, origin: Origin, profile: &mut Profile) -> Self {
        let known = Processes::new(&tables.forks, &tables.execs, &tables.exits);
        let exits = tables.exits.iter().filter(|row| !row.running);
        let mut threads = Self {
            tables,
            origin,
            processes: HashMap::new(),
            threads: HashMap::new(),
            began: tables.forks.iter().map(|row| ((row.process(), row.tid), row.ts)).collect(),
            ended: exits.map(|row| ((row.process(), row.tid), row.ts)).collect(),
        };
        for process in known.iter() {
            let handle = profile.add_process(&process.name, process.key.pid, origin.at(process.began));
            if let Some(ended) = process.ended {
                profile.set_process_end_time(handle, origin.at(ended));
            }
            threads.processes.insert(process.key, handle);
            threads.get(profile, (process.key, process.key.pid));
        }
        threads
    }

    pub(super) fn get(&mut self, profile: &mut Profile, key: ThreadKey) -> ThreadHandle {
        if let Some(thread) = self.threads.get(&key) {
            return *thread;
        }
        let (process, tid) = key;
        let start = self.origin.at(self.tables.manifest.started);
        let handle = *self
            .processes
            .entry(process)
            .or_insert_with(|| profile.add_process(&format!("pid {}", process.pid), process.pid, start));
        let began = self.began.get(&key).copied().unwrap_or(self.tables.manifest.started);
        let thread = profile.add_thread(handle, tid, self.origin.at(began), tid == process.pid);
        if let Some(ended) = self.ended.get(&key) {
            profile.set_thread_end_time(thread, self.origin.at(*ended));
        }
        profile.set_thread_show_markers_in_timeline(thread, true);
        self.threads.insert(key, thread);
        thread
    }

    /// A track for the recording itself, which is no process: its pid is the idle task's.
    pub(super) fn recording(&self, profile: &mut Profile) -> ThreadHandle {
        let start = self.origin.at(Nanos(0));
        let process = profile.add_process("Recording", 0, start);
        let thread = profile.add_thread(process, 0, start, true);
        profile.set_thread_show_markers_in_timeline(thread, true);
        thread
    }
}
