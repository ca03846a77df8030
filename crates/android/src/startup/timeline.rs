//! Processes, threads, their slices and states, and calls over binder, from the events of a trace in the order of time.

use super::event::{Event, Events, Name, Waiting, What};
use slowpath_import::perfetto_messages::{ProcessTree, task, text};
use std::collections::{BTreeSet, HashMap};

/// Slices that are open on one thread at a time.
const MOST_OPEN: usize = 4096;
/// Calls that wait for a reply at a time.
const MOST_CALLS: usize = 1 << 16;
/// User ids of one Android user.
const PER_USER: u32 = 100_000;

/// A slice.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// When it began.
    pub ts: u64,
    /// When it ended; none where the trace ended first.
    pub end: Option<u64>,
    /// Its name.
    pub name: Name,
}

impl Slice {
    /// How long it took; 0 where the trace ended first.
    pub fn duration(&self) -> u64 {
        self.end.map_or(0, |end| end.saturating_sub(self.ts))
    }
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It does not; the flag is whether the kernel said that it waited for storage (none: it did not say).
    Off(Waiting, Option<bool>),
}

/// A state and how long it lasted.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// From.
    pub from: u64,
    /// To.
    pub to: u64,
    /// What.
    pub state: State,
}

impl Span {
    /// How much of it lies in a range.
    pub fn within(&self, (from, to): (u64, u64)) -> u64 {
        self.to.min(to).saturating_sub(self.from.max(from))
    }
}

/// A thread, from its begin to its end: a tid can be another one's later.
#[derive(Debug, Default)]
pub struct Thread {
    /// Its id.
    pub tid: u32,
    /// Its process, by number.
    pub process: Option<usize>,
    /// Its name as the kernel lists it, else as the scheduler has it.
    pub name: Option<String>,
    is_listed: bool,
    /// Its slices, by begin.
    pub slices: Vec<Slice>,
    open: Vec<usize>,
    /// Its states, by begin.
    pub states: Vec<Span>,
    state: Option<(u64, State)>,
}

impl Thread {
    fn enter(&mut self, ts: u64, state: State) {
        if let Some((from, before)) = self.state.replace((ts, state)) {
            self.states.push(Span { from, to: ts, state: before });
        }
    }

    /// The time in a range in states of a kind.
    pub fn time(&self, range: (u64, u64), is_one: impl Fn(State) -> bool) -> u64 {
        let fitting = self.states.iter().filter(|span| is_one(span.state));
        fitting.map(|span| span.within(range)).fold(0, u64::saturating_add)
    }
}

/// A process.
#[derive(Debug, Default)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its command line, or what it was when it was made.
    pub name: String,
    /// Its user.
    pub uid: Option<u32>,
    /// When it was made, and the process that made it.
    pub made: Option<(u64, Option<usize>)>,
    /// Its threads, by number.
    pub threads: Vec<usize>,
}

/// A call over binder whose sender waits.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// When it was sent.
    pub ts: u64,
    /// When its reply arrived.
    pub end: Option<u64>,
    /// The thread that waits, by number.
    pub from: usize,
    /// The process that it is for, by pid.
    pub to: u32,
    /// The thread that served it, by number.
    pub by: Option<usize>,
}

/// A slice of a process, on no thread.
#[derive(Clone, Copy, Debug)]
pub struct AsyncSlice {
    /// Its process, by number.
    pub process: usize,
    /// What and when.
    pub slice: Slice,
}

/// A trace, put together.
#[derive(Debug, Default)]
pub struct Timeline {
    /// All threads.
    pub threads: Vec<Thread>,
    /// All processes.
    pub processes: Vec<Process>,
    /// Slices of processes.
    pub asyncs: Vec<AsyncSlice>,
    /// What has no duration: when, its name.
    pub instants: Vec<(u64, Name)>,
    /// Calls over binder.
    pub calls: Vec<Call>,
    /// CPUs on which threads were switched.
    pub cpus: BTreeSet<u32>,
    /// Time of the last event.
    pub end: u64,
    by_tid: HashMap<u32, usize>,
    by_pid: HashMap<u32, usize>,
    running: HashMap<u32, u32>,
    open_asyncs: HashMap<(u32, Name), Vec<usize>>,
    sent: HashMap<i32, usize>,
    replies: HashMap<i32, usize>,
    serving: HashMap<usize, Vec<usize>>,
}

impl Timeline {
    /// Puts the events together.
    pub fn new(events: &Events) -> Self {
        let mut timeline = Self::default();
        for event in &events.events {
            timeline.end = timeline.end.max(event.ts);
            timeline.take(event, events);
        }
        for thread in &mut timeline.threads {
            // What lasts at the end of the trace lasts on.
            thread.enter(u64::MAX, State::Running);
        }
        timeline
    }

    /// The process that has this pid now.
    pub fn process_of_pid(&self, pid: u32) -> Option<&Process> {
        self.by_pid.get(&pid).and_then(|at| self.processes.get(*at))
    }

    /// The main thread of a process.
    pub fn main_thread(&self, process: &Process) -> Option<&Thread> {
        process.threads.iter().filter_map(|at| self.threads.get(*at)).find(|thread| thread.tid == process.pid)
    }

    fn thread(&mut self, tid: u32) -> usize {
        if let Some(at) = self.by_tid.get(&tid) {
            return *at;
        }
        let at = self.threads.len();
        self.threads.push(Thread { tid, ..Thread::default() });
        self.by_tid.insert(tid, at);
        at
    }

    fn process(&mut self, pid: u32) -> usize {
        if let Some(at) = self.by_pid.get(&pid) {
            return *at;
        }
        let at = self.processes.len();
        self.processes.push(Process { pid, ..Process::default() });
        self.by_pid.insert(pid, at);
        let main = self.thread(pid);
        self.join(main, at);
        at
    }

    fn join(&mut self, thread: usize, process: usize) {
        if self.threads[thread].process.is_none() {
            self.threads[thread].process = Some(process);
            self.processes[process].threads.push(thread);
        }
    }

    /// A task that is new: what had its id before is another one.
    fn new_task(&mut self, ts: u64, tid: u32, is_thread: bool, parent: Option<usize>, name: &str) {
        self.by_tid.remove(&tid);
        let process = if is_thread {
            parent
        } else {
            self.by_pid.remove(&tid);
            let at = self.process(tid);
            self.processes[at].made = Some((ts, parent));
            name.clone_into(&mut self.processes[at].name);
            Some(at)
        };
        let thread = self.thread(tid);
        if let Some(process) = process {
            self.join(thread, process);
        }
        self.called(thread, name, false);
        self.threads[thread].enter(ts, State::Off(Waiting::Runnable, None));
    }

    fn called(&mut self, thread: usize, name: &str, is_listed: bool) {
        let thread = &mut self.threads[thread];
        if !name.is_empty() && (is_listed || !thread.is_listed) {
            thread.name = Some(name.to_owned());
            thread.is_listed |= is_listed;
        }
    }

    fn tree(&mut self, tree: &ProcessTree) {
        for listed in &tree.processes {
            let Some(pid) = listed.pid.and_then(task) else { continue };
            let at = self.process(pid);
            if let Some(word) = listed.cmdline.first() {
                self.processes[at].name = text(word);
            }
            self.processes[at].uid = listed.uid.and_then(|uid| u32::try_from(uid).ok()).or(self.processes[at].uid);
        }
        for listed in &tree.threads {
            let (Some(tid), Some(pid)) = (listed.tid.and_then(task), listed.tgid.and_then(task)) else { continue };
            let (process, thread) = (self.process(pid), self.thread(tid));
            self.join(thread, process);
            if let Some(name) = &listed.name {
                self.called(thread, &String::from_utf8_lossy(name), true);
            }
        }
    }

    fn take(&mut self, event: &Event, events: &Events) {
        let ts = event.ts;
        let tid = if event.tid != 0 { event.tid } else { self.running.get(&event.cpu).copied().unwrap_or(0) };
        match &event.what {
            What::Tree(tree) => self.tree(tree),
            What::Begin(pid, name) => {
                let thread = self.thread(tid);
                if let Some(pid) = pid.filter(|pid| *pid != 0) {
                    let process = self.process(pid);
                    self.join(thread, process);
                }
                self.begin(thread, ts, *name);
            }
            What::End => {
                let thread = self.thread(tid);
                let thread = &mut self.threads[thread];
                if let Some(at) = thread.open.pop() {
                    thread.slices[at].end = Some(ts);
                }
            }
            What::Async(is_begin, pid, name, key) => {
                let open = self.open_asyncs.entry((*pid, *key)).or_default();
                if !is_begin {
                    if let Some(at) = open.pop() {
                        self.asyncs[at].slice.end = Some(ts);
                    }
                } else if open.len() < MOST_OPEN {
                    open.push(self.asyncs.len());
                    let process = self.process(*pid);
                    self.asyncs.push(AsyncSlice { process, slice: Slice { ts, end: None, name: *name } });
                }
            }
            What::Instant(name) => self.instants.push((ts, *name)),
            What::Switch(prev, why, next, name) => {
                self.cpus.insert(event.cpu);
                let prev = prev.unwrap_or_else(|| self.running.get(&event.cpu).copied().unwrap_or(0));
                if prev != 0 {
                    let prev = self.thread(prev);
                    self.threads[prev].enter(ts, State::Off(*why, None));
                }
                if *next != 0 {
                    let thread = self.thread(*next);
                    self.threads[thread].enter(ts, State::Running);
                    self.called(thread, events.names.text(*name), false);
                }
                self.running.insert(event.cpu, *next);
            }
            What::Woken(tid) => {
                let thread = self.thread(*tid);
                let thread = &mut self.threads[thread];
                let is_up = |(_, state)| matches!(state, State::Running | State::Off(Waiting::Runnable, _));
                if !thread.state.is_some_and(is_up) {
                    thread.enter(ts, State::Off(Waiting::Runnable, None));
                }
            }
            What::Blocked(tid, is_storage) => {
                let thread = self.thread(*tid);
                self.blocked(thread, *is_storage);
            }
            What::New(new, is_thread, name) => {
                let parent = self.by_tid.get(&tid).and_then(|at| self.threads[*at].process);
                self.new_task(ts, *new, *is_thread, parent, events.names.text(*name));
            }
            What::Renamed(tid, name) => {
                let thread = self.thread(*tid);
                self.called(thread, events.names.text(*name), false);
            }
            What::Freed(tid) => {
                self.by_tid.remove(tid);
                self.by_pid.remove(tid);
            }
            What::Sent(number, to, to_thread, is_reply, waits) => {
                let thread = self.thread(tid);
                self.sent(ts, thread, (*number, *to, *to_thread), *is_reply, *waits);
            }
            What::Received(number) => {
                let thread = self.thread(tid);
                self.received(ts, thread, *number);
            }
        }
    }

    fn begin(&mut self, thread: usize, ts: u64, name: Name) {
        let thread = &mut self.threads[thread];
        if thread.open.len() < MOST_OPEN {
            thread.open.push(thread.slices.len());
            thread.slices.push(Slice { ts, end: None, name });
        }
    }

    /// The kernel says it when the thread is woken: of the wait that lasts, or of the one that has just ended.
    fn blocked(&mut self, thread: usize, is_storage: bool) {
        let thread = &mut self.threads[thread];
        match &mut thread.state {
            Some((_, State::Off(Waiting::Uninterruptible, storage))) => *storage = Some(is_storage),
            Some((_, State::Off(Waiting::Runnable, _))) => {
                if let Some(Span { state: State::Off(Waiting::Uninterruptible, storage), .. }) =
                    thread.states.last_mut()
                {
                    *storage = Some(is_storage);
                }
            }
            _ => {}
        }
    }

    fn sent(&mut self, ts: u64, thread: usize, (number, to, _to_thread): (i32, u32, u32), is_reply: bool, waits: bool) {
        if is_reply {
            if let Some(call) = self.serving.get_mut(&thread).and_then(Vec::pop) {
                self.replies.insert(number, call);
            }
        } else if waits && self.sent.len() < MOST_CALLS {
            self.sent.insert(number, self.calls.len());
            self.calls.push(Call { ts, end: None, from: thread, to, by: None });
        }
    }

    fn received(&mut self, ts: u64, thread: usize, number: i32) {
        if let Some(call) = self.sent.remove(&number) {
            self.calls[call].by = Some(thread);
            let serving = self.serving.entry(thread).or_default();
            if serving.len() < MOST_OPEN {
                serving.push(call);
            }
        } else if let Some(call) = self.replies.remove(&number) {
            self.calls[call].end = Some(ts);
        }
    }
}

/// The package of a user id, whichever user of the device it is of.
pub fn app_id(uid: u32) -> u32 {
    uid % PER_USER
}
