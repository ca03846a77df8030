//! The events of a trace, from its packets, in the order of time.

use prost::Message;
use slowpath_import::perfetto_messages::{
    CLONE_THREAD, CompactSched, FtraceEvent, FtraceEventBundle, ProcessTree, TracePacket, task, text,
};
use slowpath_import::{ImportError, Input, next_perfetto_packet};
use std::collections::HashMap;

/// Events that are kept in memory: a minute of a busy phone, less than 400 MB with what is made of them.
const MOST_EVENTS: usize = 4 << 20;
/// Different names of slices and threads.
const MOST_NAMES: usize = 1 << 20;

/// `TF_ONE_WAY` of binder: nobody waits for a reply.
const ONE_WAY: u32 = 1;

/// A name, by its number in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name(u32);

/// All names of a trace, each once.
#[derive(Debug, Default)]
pub struct Names {
    texts: Vec<String>,
    numbers: HashMap<String, Name>,
}

impl Names {
    fn of(&mut self, text: &str) -> Name {
        if let Some(name) = self.numbers.get(text) {
            return *name;
        }
        if self.texts.len() >= MOST_NAMES {
            return self.of_rest();
        }
        self.insert(text)
    }

    /// The one name of all those for which there is no room.
    fn of_rest(&mut self) -> Name {
        match self.numbers.get("") {
            Some(name) => *name,
            None => self.insert(""),
        }
    }

    fn insert(&mut self, text: &str) -> Name {
        let name = Name(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), name);
        name
    }

    /// What it reads.
    pub fn text(&self, name: Name) -> &str {
        self.texts.get(name.0 as usize).map_or("", String::as_str)
    }
}

/// Why a thread does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It could run.
    Runnable,
    /// `S`.
    Interruptible,
    /// `D`.
    Uninterruptible,
    /// Stopped, traced, dead.
    Other,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// Processes and threads, as the kernel lists them.
    Tree(Box<ProcessTree>),
    /// A slice begins on the running thread, of this process.
    Begin(Option<u32>, Name),
    /// The innermost slice of the running thread ends.
    End,
    /// A slice of the process begins (or ends): pid, name, and what its begin and its end have in common.
    Async(bool, u32, Name, Name),
    /// Something without a duration.
    Instant(Name),
    /// Another thread runs: who ran (unknown where only the columns say who comes next), why it does not any more, who comes, its name.
    Switch(Option<u32>, Waiting, u32, Name),
    /// A thread was woken.
    Woken(u32),
    /// Whether a thread waited for storage.
    Blocked(u32, bool),
    /// A task that the running one made; whether it is a thread of the same process.
    New(u32, bool, Name),
    /// The running task, or this one, has another name.
    Renamed(u32, Name),
    /// A task is gone.
    Freed(u32),
    /// A call or a reply is sent: its number, process and thread that it is for, whether it is a reply, whether somebody waits.
    Sent(i32, u32, u32, bool, bool),
    /// A call or a reply arrives at the running thread.
    Received(i32),
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// When, ns.
    pub ts: u64,
    /// The running thread; 0 where that is not known.
    pub tid: u32,
    /// Where.
    pub cpu: u32,
    /// What.
    pub what: What,
}

/// A package of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// The user of its processes.
    pub uid: u32,
    /// Whether it can be debugged.
    pub is_debuggable: bool,
}

/// What a trace holds.
#[derive(Debug, Default)]
pub struct Events {
    /// In the order of time.
    pub events: Vec<Event>,
    /// Their names.
    pub names: Names,
    /// All packages, where the trace lists them.
    pub packages: Vec<Package>,
    /// The API level, where the trace says it.
    pub api_level: Option<u32>,
    /// Packets before which the kernel lost events.
    pub lost: u64,
    /// Events for which there was no room.
    pub left_out: u64,
    /// It holds compressed packets, which are not read.
    pub is_compressed: bool,
    latest: u64,
}

impl Events {
    /// Reads a trace. What was read before an error is kept.
    pub fn read(input: &mut Input<'_>) -> (Self, Option<ImportError>) {
        let mut events = Self::default();
        let problem = events.packets(input).err();
        // Those of one moment stay in the order of the trace.
        events.events.sort_by_key(|event| event.ts);
        (events, problem)
    }

    fn packets(&mut self, input: &mut Input<'_>) -> Result<(), ImportError> {
        let mut bytes = Vec::new();
        while next_perfetto_packet(input, &mut bytes)? {
            let Ok(packet) = TracePacket::decode(bytes.as_slice()) else {
                return Err(input.wrong_bytes("a TracePacket message before this byte"));
            };
            self.packet(packet);
        }
        Ok(())
    }

    fn packet(&mut self, packet: TracePacket) {
        self.is_compressed |= packet.compressed_packets.is_some();
        let at = packet.timestamp.unwrap_or(self.latest);
        let level = packet.system_info.and_then(|info| info.android_sdk_version);
        self.api_level = level.and_then(|level| u32::try_from(level).ok()).or(self.api_level);
        for package in packet.packages_list.into_iter().flat_map(|list| list.packages).take(MOST_NAMES) {
            if let (Some(name), Some(uid)) = (package.name, package.uid) {
                self.packages.push(Package {
                    name: text(&name),
                    uid: u32::try_from(uid).unwrap_or(u32::MAX),
                    is_debuggable: package.debuggable == Some(true),
                });
            }
        }
        if let Some(tree) = packet.process_tree {
            self.add(at, 0, 0, What::Tree(Box::new(tree)));
        }
        if let Some(bundle) = packet.ftrace_events {
            self.bundle(bundle);
        }
    }

    fn add(&mut self, ts: u64, tid: u32, cpu: u32, what: What) {
        self.latest = self.latest.max(ts);
        if self.events.len() < MOST_EVENTS {
            self.events.push(Event { ts, tid, cpu, what });
        } else {
            self.left_out += 1;
        }
    }

    fn name(&mut self, bytes: &[u8]) -> Name {
        self.names.of(String::from_utf8_lossy(bytes).trim_end_matches(['\n', '\0']))
    }

    fn bundle(&mut self, bundle: FtraceEventBundle) {
        self.lost += u64::from(bundle.lost_events == Some(true));
        let cpu = bundle.cpu.unwrap_or(0);
        if let Some(columns) = bundle.compact_sched {
            self.columns(&columns, cpu);
        }
        for event in bundle.event {
            let (Some(ts), tid) = (event.timestamp, event.pid.unwrap_or(0)) else { continue };
            if let Some(what) = self.what(event) {
                self.add(ts, tid, cpu, what);
            }
        }
    }

    fn columns(&mut self, columns: &CompactSched, cpu: u32) {
        for (ts, bits, next, name) in columns.switches() {
            let name = self.name(name);
            self.add(ts, 0, cpu, What::Switch(None, waiting(bits), next.unwrap_or(0), name));
        }
        for (ts, tid) in columns.wakings() {
            self.add(ts, 0, cpu, What::Woken(tid));
        }
    }

    fn what(&mut self, event: FtraceEvent) -> Option<What> {
        if let Some(print) = event.print {
            return self.printed(&print.buf.unwrap_or_default());
        }
        if let Some(switch) = event.sched_switch {
            let name = self.name(&switch.next_comm.unwrap_or_default());
            let next = switch.next_pid.and_then(task).unwrap_or(0);
            let prev = switch.prev_pid.and_then(task).unwrap_or(0);
            return Some(What::Switch(Some(prev), waiting(switch.prev_state.unwrap_or(0)), next, name));
        }
        if let Some(woken) = event.sched_waking.or(event.sched_wakeup) {
            return Some(What::Woken(woken.pid.and_then(task)?));
        }
        if let Some(reason) = event.sched_blocked_reason {
            return Some(What::Blocked(reason.pid.and_then(task)?, reason.io_wait.unwrap_or(0) != 0));
        }
        if let Some(sent) = event.binder_transaction {
            let (to, thread) = (sent.to_proc.and_then(task).unwrap_or(0), sent.to_thread.and_then(task).unwrap_or(0));
            let (is_reply, waits) = (sent.reply.unwrap_or(0) != 0, sent.flags.unwrap_or(0) & ONE_WAY == 0);
            return Some(What::Sent(sent.debug_id?, to, thread, is_reply, waits));
        }
        if let Some(received) = event.binder_transaction_received {
            return Some(What::Received(received.debug_id?));
        }
        if let Some(made) = event.task_newtask {
            let name = self.name(&made.comm.unwrap_or_default());
            return Some(What::New(made.pid.and_then(task)?, made.clone_flags.unwrap_or(0) & CLONE_THREAD != 0, name));
        }
        if let Some(renamed) = event.task_rename {
            let name = self.name(&renamed.newcomm.unwrap_or_default());
            return Some(What::Renamed(renamed.pid.and_then(task)?, name));
        }
        let freed = event.sched_process_free?;
        Some(What::Freed(freed.pid.and_then(task)?))
    }

    /// What `atrace` writes: a letter and fields between bars (system/core/libcutils, trace.h).
    fn printed(&mut self, buffer: &[u8]) -> Option<What> {
        let text = String::from_utf8_lossy(buffer);
        let text = text.trim_end_matches(['\n', '\0']);
        let (letter, rest) = text.split_at_checked(1)?;
        let rest = rest.strip_prefix('|').unwrap_or(rest);
        let (pid, name) = rest.split_once('|').unwrap_or((rest, ""));
        let pid: Option<u32> = pid.parse().ok();
        match letter {
            "B" => Some(What::Begin(pid, self.names.of(name))),
            "E" => Some(What::End),
            "I" => Some(What::Instant(self.names.of(name))),
            "N" => {
                let (_, name) = name.split_once('|')?;
                Some(What::Instant(self.names.of(name)))
            }
            "S" | "F" => {
                let key = self.names.of(name);
                let name = name.rsplit_once('|').map_or(name, |(name, _)| name);
                Some(What::Async(letter == "S", pid?, self.names.of(name), key))
            }
            // On a track of its own: the end says the track and the cookie, not the name.
            "G" => {
                let (track, rest) = name.split_once('|')?;
                let (name, cookie) = rest.rsplit_once('|').unwrap_or((rest, ""));
                let key = self.names.of(&format!("{track}|{cookie}"));
                Some(What::Async(true, pid?, self.names.of(name), key))
            }
            "H" => {
                let key = self.names.of(name);
                Some(What::Async(false, pid?, key, key))
            }
            _ => None,
        }
    }
}

/// Task states of the kernel as `sched_switch` has them (include/trace/events/sched.h).
fn waiting(bits: i64) -> Waiting {
    match bits {
        0 => Waiting::Runnable,
        _ if bits & 0x3c != 0 => Waiting::Other,
        _ if bits & 0x02 != 0 => Waiting::Uninterruptible,
        _ if bits & 0x01 != 0 => Waiting::Interruptible,
        _ if bits & 0xff == 0 => Waiting::Runnable,
        _ => Waiting::Other,
    }
}
