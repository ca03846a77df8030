//! The trace of a miss as tables of a recording, so that `analyze`, `report` and `export` work on it. Pure, but for who measures
//! ([`Owner::this_process`], [`manifest_of`]).
//!
//! The processes of the pairs are what was recorded: when their threads did not run (`off_cpu`), when they began and ended. What
//! everybody else did is in `cpu_events`, by CPU.
//!
//! What the trace does not say stays unsaid. Of a wait it has no system call: one within a transaction has the reason that the
//! transport waits for, any other is `kernel`. The scheduler's own account of a thread is not in it, so nothing is unexplained by
//! construction (`analysis::time::ledger`). Where the switch to a thread is missing, its row ends with the wake-up and a loss is counted.

use super::cpus;
use super::parse::{Event, EventKind, events};
use crate::latency::{PairSamples, Process};
use crate::transport::Transport;
use slowpath_recording::{Manifest, Probe, ProbeState, Tables, WriteError, Writer};
use slowpath_tables::missing::declared;
use slowpath_tables::{Exec, Exit, Fork, Nanos, OffCpu, OffCpuReason};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Whose processes they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The process that forked them.
    pub parent: u32,
    /// Their user.
    pub uid: u32,
    /// Their group.
    pub gid: u32,
}

impl Owner {
    /// This process, which forks the pairs.
    pub fn this_process() -> Self {
        let (uid, gid) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        Self { parent: std::process::id(), uid, gid }
    }
}

/// What the manifest says of a measurement with this transport, for a user; when, and on which machine, is the caller's to say.
pub fn manifest_of(transport: &Transport, uid: u32) -> Manifest {
    Manifest {
        command: ["slowpath", "ipc", "latency", "--transport", transport.name].map(str::to_owned).to_vec(),
        uid,
        cwd: std::env::current_dir().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        ..Manifest::default()
    }
}

/// The recording of a trace. `waits` is what the transport's two ends wait for; `manifest` says when and on which machine.
pub fn recorded(
    text: &[u8],
    measured: &[PairSamples],
    waits: OffCpuReason,
    owner: Owner,
    manifest: Manifest,
) -> Tables {
    let events = events(text);
    let begin = begin(text, &events);
    let end = events.last().map_or(begin, |event| event.time);
    let events = &events[events.partition_point(|event| event.time < begin)..];
    let (windows, threads) = (Windows::of(measured), known(measured));
    let clients = measured.iter().map(|pair| pair.client.pid).collect();
    let mut reader = Reader { waits, windows, clients, threads, rows: Vec::new(), lost: 0 };
    events.iter().for_each(|event| reader.take(event));
    let (cpu_events, lost_events) = cpus::events(events, begin, end);
    let mut tables = Tables { cpu_events, manifest, ..Tables::default() };
    let lost_waits = reader.finish(end, &mut tables);
    execs(measured, begin, owner, &mut tables);
    let manifest = &mut tables.manifest;
    (manifest.started, manifest.ended) = (Nanos(begin), Some(Nanos(end)));
    manifest.stop_reason = Some("a real-time caller missed its deadline".to_owned());
    manifest.probes = vec![Probe { name: "off_cpu".to_owned(), state: ProbeState::Attached }];
    for (kind, lost) in [("off_cpu", lost_waits), ("cpu_events", lost_events)] {
        if lost > 0 {
            manifest.losses.add(kind, lost);
        }
    }
    manifest.unavailable.push(declared::BEYOND_TRACE.because(
        "the kernel's trace of a miss has scheduling, interrupts, work queues, frequencies and idle states",
        "`slowpath record --off-cpu --pid PID` beside the benchmark",
    ));
    tables.settle();
    tables
}

/// Writes them into a directory, which is made or empty.
///
/// # Errors
/// It cannot be written.
pub fn write(directory: &Path, mut tables: Tables) -> Result<(), WriteError> {
    let manifest = std::mem::take(&mut tables.manifest);
    let ended = manifest.ended;
    let mut writer = Writer::create(directory, Manifest { ended: None, ..manifest })?;
    let pushed = tables.write(&mut writer);
    writer.finish(|manifest| manifest.ended = ended)?;
    pushed
}

/// From when on the trace has the events of all CPUs: their buffers are overwritten one by one.
fn begin(text: &[u8], events: &[Event]) -> u64 {
    let mut first: BTreeMap<u32, u64> = BTreeMap::new();
    for event in events {
        first.entry(event.cpu).or_insert(event.time);
    }
    let times = first.into_values();
    if is_whole(text) { times.min() } else { times.max() }.unwrap_or_default()
}

/// Whether the header says that nothing was overwritten: `# entries-in-buffer/entries-written: 80/80   #P:2`.
fn is_whole(text: &[u8]) -> bool {
    let header = String::from_utf8_lossy(&text[..text.len().min(512)]).into_owned();
    let numbers = header.split_once("entries-in-buffer/entries-written: ").and_then(|(_, rest)| {
        let (kept, rest) = rest.split_once('/')?;
        Some((kept.parse::<u64>().ok()?, rest.split_whitespace().next()?.parse::<u64>().ok()?))
    });
    numbers.is_some_and(|(kept, written)| kept == written)
}

/// Times in which a wait of a thread has a known reason.
#[derive(Default)]
struct Windows {
    /// By calling thread: from the call to the reply. A wait within is one for the reply.
    calls: HashMap<u32, Vec<(u64, u64)>>,
    /// By serving thread: from the begin of the service to the reply. A wait that is not within is one for a request.
    services: HashMap<u32, Vec<(u64, u64)>>,
}

impl Windows {
    fn of(measured: &[PairSamples]) -> Self {
        let mut windows = Self::default();
        for sample in measured.iter().flat_map(|pair| &pair.samples) {
            // The trace counts in microseconds, cut.
            let (start, served, end) = (sample.start / 1000 * 1000, sample.served / 1000 * 1000, sample.end);
            windows.calls.entry(sample.client_thread).or_default().push((start, end));
            windows.services.entry(sample.server_thread).or_default().push((served, end));
        }
        windows.calls.values_mut().chain(windows.services.values_mut()).for_each(|list| list.sort_unstable());
        windows
    }

    /// Whether the wait is the transport's own.
    fn is_transport(&self, thread: u32, from: u64, to: u64) -> bool {
        let within = |list: &Vec<(u64, u64)>| {
            let before = list.partition_point(|window| window.0 <= from);
            before > 0 && to <= list[before - 1].1
        };
        match (self.calls.get(&thread), self.services.get(&thread)) {
            (Some(calls), _) => within(calls),
            (None, Some(services)) => !within(services),
            (None, None) => false,
        }
    }
}

/// A thread of the recorded processes.
#[derive(Clone, Debug)]
struct Thread {
    process: Process,
    /// When it was made, or first seen.
    began: Option<u64>,
    /// Since when it does not run, and in which state it left its CPU.
    away: Option<(u64, char)>,
    /// Who woke it, when, and whether from an interrupt.
    woken: Option<(u64, u32, bool)>,
    ended: Option<u64>,
}

impl Thread {
    fn of(process: Process) -> Self {
        Self { process, began: None, away: None, woken: None, ended: None }
    }
}

/// The threads that are known from what was measured.
fn known(measured: &[PairSamples]) -> BTreeMap<u32, Thread> {
    let mut threads = BTreeMap::new();
    for pair in measured {
        for sample in &pair.samples {
            threads.insert(sample.client_thread, Thread::of(pair.client));
            threads.insert(sample.server_thread, Thread::of(pair.server));
        }
        threads.extend(pair.helpers.iter().map(|helper| (helper.process.pid, Thread::of(helper.process))));
        threads.insert(pair.client.pid, Thread::of(pair.client));
        threads.insert(pair.server.pid, Thread::of(pair.server));
    }
    threads
}

struct Reader {
    waits: OffCpuReason,
    windows: Windows,
    /// Pids of those that make threads; a server makes none, but may start a bus.
    clients: BTreeSet<u32>,
    threads: BTreeMap<u32, Thread>,
    rows: Vec<OffCpu>,
    lost: u64,
}

impl Reader {
    fn take(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Switch { previous, state, next } => {
                self.leaves(previous.thread, event.time, *state);
                self.arrives(next.thread, event.time);
            }
            EventKind::Waking { task, is_new: true, .. } => {
                let maker = self.threads.get(&event.thread).map(|maker| maker.process);
                let maker = maker.filter(|process| self.clients.contains(&process.pid));
                let made = self.threads.entry(task.thread);
                // A process of another pair is known by its own pid.
                let thread = match (made, maker) {
                    (Entry::Occupied(known), _) => known.into_mut(),
                    (Entry::Vacant(new), Some(process)) => new.insert(Thread::of(process)),
                    _ => return,
                };
                *thread =
                    Thread { began: Some(event.time), away: Some((event.time, 'R')), ..Thread::of(thread.process) };
            }
            EventKind::Waking { task, .. } => {
                let Some(thread) = self.threads.get_mut(&task.thread) else { return };
                if thread.began.is_none() {
                    // Before the trace it waited for something.
                    (thread.began, thread.away) = (Some(event.time), Some((event.time, 'S')));
                }
                // Who is about to wait may be woken before it has left its CPU.
                if thread.away.is_some_and(|(_, state)| state != 'R') {
                    thread.woken.get_or_insert((event.time, event.thread, event.in_interrupt));
                }
            }
            _ => {}
        }
    }

    fn leaves(&mut self, tid: u32, time: u64, state: char) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.began.get_or_insert(time);
        // When it got the CPU is not in the trace: until it was woken, it did not run.
        if thread.away.is_some() {
            let woken = thread.woken.map(|(woken, ..)| woken);
            self.lost += 1;
            self.row(tid, woken);
        }
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        (thread.away, thread.woken) = (Some((time, state)), None);
        if matches!(state, 'X' | 'Z') {
            (thread.away, thread.ended) = (None, Some(time));
        }
    }

    fn arrives(&mut self, tid: u32, time: u64) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.began.get_or_insert(time);
            self.row(tid, Some(time));
        }
    }

    /// The end of a time off the CPU; `None` where not even a lower bound of it is known.
    fn row(&mut self, tid: u32, until: Option<u64>) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let (Some((from, state)), woken) = (thread.away.take(), thread.woken.take()) else { return };
        let process = thread.process;
        let Some(until) = until.filter(|until| *until > from) else { return };
        let reason = match state {
            'R' => OffCpuReason::Runnable,
            'T' | 't' => OffCpuReason::Stopped,
            'S' if self.windows.is_transport(tid, from, woken.map_or(until, |(woken, ..)| woken)) => self.waits,
            _ => OffCpuReason::Kernel,
        };
        let waker = woken.filter(|(.., in_interrupt)| !in_interrupt).map(|(_, waker, _)| waker);
        let runnable_since = if state == 'R' { Some(from) } else { woken.map(|(woken, ..)| woken) };
        self.rows.push(OffCpu {
            ts: Nanos(from),
            duration: Nanos(until - from),
            pid: process.pid,
            start: Nanos(process.started),
            tid,
            reason,
            runnable: Nanos(runnable_since.map_or(0, |since| until.saturating_sub(since))),
            woken: woken.map(|(woken, ..)| Nanos(woken)),
            // Of a thread that is not recorded the trace has no pid.
            waker_pid: waker.and_then(|tid| self.threads.get(&tid)).map(|waker| waker.process.pid),
            waker_tid: waker,
            syscall: -1,
            stack: None,
        });
    }

    /// Ends the threads that live; how many rows have a lower bound for their end.
    fn finish(mut self, end: u64, tables: &mut Tables) -> u64 {
        let tids: Vec<u32> = self.threads.keys().copied().collect();
        tids.iter().for_each(|tid| self.row(*tid, Some(end)));
        for (tid, thread) in &self.threads {
            // Of others there is no event: they lived before the trace.
            let Some(began) = thread.began else { continue };
            let Process { pid, started } = thread.process;
            if *tid != pid {
                tables.forks.push(Fork {
                    ts: Nanos(began),
                    parent_pid: pid,
                    parent_start: Nanos(started),
                    pid,
                    start: Nanos(started),
                    tid: *tid,
                    thread: true,
                });
            }
            tables.exits.push(Exit {
                ts: Nanos(thread.ended.unwrap_or(end)),
                pid,
                start: Nanos(started),
                tid: *tid,
                last: *tid == pid,
                running: thread.ended.is_none(),
                ..no_account()
            });
        }
        tables.off_cpu = self.rows;
        self.lost
    }
}

/// A row of `exits` without the kernel's counters, which the trace does not have.
fn no_account() -> Exit {
    Exit {
        ts: Nanos(0),
        pid: 0,
        start: Nanos(0),
        tid: 0,
        last: false,
        status: None,
        signal: None,
        min_flt: 0,
        maj_flt: 0,
        utime: Nanos(0),
        stime: Nanos(0),
        run_time: None,
        read_bytes: slowpath_tables::Bytes(0),
        running: true,
    }
}

/// Client and server of each pair, forked from slowpath and named for what they do, and what the server started.
fn execs(measured: &[PairSamples], begin: u64, owner: Owner, tables: &mut Tables) {
    let mut add = |process: Process, parent: u32, filename: String, command_line: String| {
        tables.execs.push(Exec {
            ts: Nanos(begin.max(process.started)),
            present: true,
            pid: process.pid,
            start: Nanos(process.started),
            parent_pid: parent,
            uid: owner.uid,
            gid: owner.gid,
            filename,
            command_line,
            dev: 0,
            ino: 0,
            min_flt: 0,
            maj_flt: 0,
            run_time: None,
        });
    };
    for (number, pair) in measured.iter().enumerate() {
        let both = [("server", pair.server), ("client", pair.client)];
        let one = if pair.server == pair.client { &both[1..] } else { &both[..] };
        for (role, process) in one {
            let words = format!("slowpath ipc latency: {role} of P{number}");
            add(*process, owner.parent, format!("P{number}-{role}"), words);
        }
        for helper in &pair.helpers {
            add(helper.process, pair.server.pid, format!("P{number}-{}", helper.name), helper.name.clone());
        }
    }
}

#[cfg(test)]
#[path = "recorded_tests.rs"]
mod tests;
