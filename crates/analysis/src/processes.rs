//! The processes of a recording: who started whom, what it ran, from when until when.
//!
//! Owns the process model built from `forks`, `execs` and `exits`. Leaves address spaces to [`crate::memory::address_space`].

use slowpath_recording::Tables;
use slowpath_tables::{Exec, Exit, FileKey, Fork, Nanos, ProcessKey};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Pid of the kernel thread that makes the others (`kthreadd`, init/main.c).
const KTHREADD: u32 = 2;

/// Generations of parents in which the program of a copy is looked for.
const MOST_ANCESTORS: usize = 64;

/// One process of the recorded tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Pid and start time.
    pub key: ProcessKey,
    /// Who forked it, where that was recorded.
    pub parent: Option<ProcessKey>,
    /// Base name of the program it ran last; a child that never called exec has its parent's.
    pub name: String,
    /// Command line of that program; cut as in the recording.
    pub command_line: String,
    /// Effective uid after its last exec, where it called exec.
    pub uid: Option<u32>,
    /// When it was first seen: its fork, or its first exec.
    pub began: Nanos,
    /// When its last thread ended; `None` while it ran at the end of the recording.
    pub ended: Option<Nanos>,
    /// Time of its first exec.
    pub first_exec: Option<Nanos>,
    /// Thread ids seen in `forks` and `exits`.
    pub threads: BTreeSet<u32>,
}

/// All processes of a recording.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    by_key: BTreeMap<ProcessKey, Process>,
    main: Option<ProcessKey>,
}

/// Name of a program: the base name of its path and, for programs of the Chromium family that start their own image
/// in several roles, the value of `--type=`.
fn program_name(filename: &str, command_line: &str) -> String {
    let base = filename.rsplit('/').find(|part| !part.is_empty()).unwrap_or(filename);
    match command_line.split(' ').find_map(|word| word.strip_prefix("--type=")) {
        Some(role) if !role.is_empty() => format!("{base} ({role})"),
        _ => base.to_owned(),
    }
}

/// The kernel's own threads among the processes; they are there when the whole system was recorded.
pub(crate) fn kernel_threads(tables: &Tables) -> HashSet<ProcessKey> {
    let is_one = |pid: u32, parent: u32| pid == KTHREADD || parent == KTHREADD;
    let present = tables.execs.iter().filter(|exec| exec.present && exec.command_line.is_empty());
    let present = present.filter(|exec| is_one(exec.pid, exec.parent_pid)).map(|exec| exec.process());
    let born = tables.forks.iter().filter(|fork| !fork.thread && fork.parent_pid == KTHREADD);
    present.chain(born.map(|fork| fork.process())).collect()
}

impl Processes {
    /// Builds the model. Rows may be in any order.
    pub fn new(forks: &[Fork], execs: &[Exec], exits: &[Exit]) -> Self {
        enum Event<'a> {
            Fork(&'a Fork),
            Exec(&'a Exec),
            Exit(&'a Exit),
        }
        let mut events: Vec<(Nanos, u8, Event<'_>)> = forks
            .iter()
            .map(|row| (row.ts, 0, Event::Fork(row)))
            .chain(execs.iter().map(|row| (row.ts, 1, Event::Exec(row))))
            .chain(exits.iter().map(|row| (row.ts, 2, Event::Exit(row))))
            .collect();
        events.sort_by_key(|(ts, order, _)| (*ts, *order));
        let mut processes = Self::default();
        for (ts, _, event) in events {
            match event {
                Event::Fork(row) => processes.fork(ts, row),
                Event::Exec(row) => processes.exec(ts, row),
                Event::Exit(row) => processes.exit(ts, row),
            }
        }
        processes.main = processes.find_main();
        processes
    }

    fn entry(&mut self, key: ProcessKey, seen: Nanos) -> &mut Process {
        self.by_key.entry(key).or_insert_with(|| Process {
            key,
            parent: None,
            name: format!("pid {}", key.pid),
            command_line: String::new(),
            uid: None,
            began: seen,
            ended: None,
            first_exec: None,
            threads: BTreeSet::from([key.pid]),
        })
    }

    fn fork(&mut self, ts: Nanos, row: &Fork) {
        if row.thread {
            self.entry(row.process(), ts).threads.insert(row.tid);
            return;
        }
        let parent = ProcessKey { pid: row.parent_pid, start: row.parent_start };
        let inherited =
            self.by_key.get(&parent).map(|parent| (parent.name.clone(), parent.command_line.clone(), parent.uid));
        let child = self.entry(row.process(), ts);
        child.parent = Some(parent);
        child.threads.insert(row.tid);
        if let Some((name, command_line, uid)) = inherited {
            child.name = name;
            child.command_line = command_line;
            child.uid = uid;
        }
    }

    fn exec(&mut self, ts: Nanos, row: &Exec) {
        let process = self.entry(row.process(), ts);
        // A task of the kernel's own has a name with slashes, and no path: kworker/0:1.
        let is_kernel = row.present && row.command_line.is_empty();
        process.name = if is_kernel { row.filename.clone() } else { program_name(&row.filename, &row.command_line) };
        process.command_line = row.command_line.clone();
        process.uid = Some(row.uid);
        process.first_exec.get_or_insert(ts);
    }

    fn exit(&mut self, ts: Nanos, row: &Exit) {
        let process = self.entry(row.process(), ts);
        process.threads.insert(row.tid);
        if row.ends_process() {
            process.ended = Some(ts);
        }
    }

    /// The root of the tree: the earliest exec by a process whose parent is not of the tree.
    fn find_main(&self) -> Option<ProcessKey> {
        let roots = self
            .by_key
            .values()
            .filter(|process| process.parent.is_none_or(|parent| !self.by_key.contains_key(&parent)));
        roots.min_by_key(|process| (process.first_exec.is_none(), process.began)).map(|process| process.key)
    }

    /// The launch's own process: what the launcher's exec started.
    pub fn main(&self) -> Option<ProcessKey> {
        self.main
    }

    /// A process by its key.
    pub fn get(&self, key: ProcessKey) -> Option<&Process> {
        self.by_key.get(&key)
    }

    /// True when the process belongs to the recorded tree.
    pub fn contains(&self, key: ProcessKey) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Name of a process, or its pid where it is not of the tree.
    pub fn name(&self, key: ProcessKey) -> String {
        self.get(key).map_or_else(|| format!("pid {}", key.pid), |process| process.name.clone())
    }

    /// All processes, by pid and start.
    pub fn iter(&self) -> impl Iterator<Item = &Process> {
        self.by_key.values()
    }

    /// Device and inode of the program of each process, from the rows that these processes were made of; a copy has its parent's.
    pub(crate) fn executables(&self, execs: &[Exec]) -> HashMap<ProcessKey, FileKey> {
        let own: HashMap<ProcessKey, FileKey> = execs.iter().map(|exec| (exec.process(), exec.file())).collect();
        let parent = |key: &ProcessKey| self.get(*key).and_then(|process| process.parent);
        let of = |key: ProcessKey| {
            let ancestors = std::iter::successors(Some(key), parent).take(MOST_ANCESTORS);
            ancestors.filter_map(|one| own.get(&one)).next().copied()
        };
        self.iter().filter_map(|process| Some((process.key, of(process.key)?))).collect()
    }

    /// Number of processes.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// True when no process was recorded.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}
